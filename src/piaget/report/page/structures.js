// How tasks use components, and when components came and went.

/** @param {RunData} run */
const hasStructures = (run) => run.structures.some((task) => task.length);

/** Uses of 0 to 1 are shown as they are; others (linear combinations) by the largest. */
function heatOfUses(uses) {
  const most = uses.reduce((a, use) => Math.max(a, Math.abs(use)), 0);
  const shared = uses.every((use) => use >= 0) && most <= 1;
  return (use) => use / (shared ? 1 : most || 1);
}

/** @param {RunData} run */
function structurePanel(run, positions, every, width) {
  const size = Math.max(...positions.map((j) => run.structures[j].length));
  const depth = Math.max(...positions.map((j) => run.structures[j][0]?.length ?? 0));
  const cell = size > 12 ? 13 : 18;
  const [left, wide, tall] = [24, Math.max(depth * cell, 112) + 16, size * cell + 40];
  const columns = Math.max(1, Math.floor((width - left) / wide));
  const heat = heatOfUses(positions.flatMap((j) => run.structures[j].flat()));
  const chart = new Chart(
    `${runLabel(run)}: how much each of ${count(positions.length, "task")} uses each of ` +
      `${count(size, "component")} at each of ${count(depth, "depth")}.`,
    { width, height: Math.ceil(positions.length / columns) * tall + 4 });
  positions.forEach((j, k) => {
    const [x0, y0] = [left + (k % columns) * wide, Math.floor(k / columns) * tall];
    chart.text(x0, y0 + 12, `${j + 1} ${run.tasks[j]}`, "name", wide - 8);
    if (k % columns === 0)
      range(size).forEach((c) => chart.text(x0 - 6, y0 + 20 + (c + 0.5) * cell + 4, `${c}`, "tick end"));
    run.structures[j].forEach((uses, c) => {
      const y = y0 + 20 + c * cell;
      uses.forEach((use, d) => chart.cell(x0 + d * cell, y, cell, cell, heat(use),
        `${run.tasks[j]}\ncomponent ${c} at depth ${d + 1}: ${format(use, 2)}`));
    });
  });
  const which = positions.length < every ? `${positions.length} of ${every} tasks` : "each task";
  return panel(`Component (rows) by depth (columns), for ${which}`, chart.node);
}

/** How many components there are after each task. @param {RunData} run */
const sizesOf = (run) => run.tasks.map((_, j) =>
  run.lives.filter(({ born, left }) => born <= j && (left === null || left > j)).length);

/** What it is called, or what became of it. @type {(run: RunData, life: LifeData) => string} */
function lifeName(run, { component, into }) {
  if (component !== null) return `component ${component}`;
  if (into === null) return "removed";
  const heir = run.lives[into].component;
  return heir === null ? "merged" : `merged into ${heir}`;
}

/** @param {LifeData} life */
function lifeStory({ born, left, into }) {
  const began = born < 0 ? "from the start" : `born with task ${born + 1}`;
  return left === null ? began : `${began}, ${into === null ? "removed" : "merged"} after task ${left + 1}`;
}

/** Above the map: how many components there are, as steps over the same columns. */
function drawSizes(chart, run, bins, left, cell) {
  const sizes = sizesOf(run);
  const most = Math.max(...sizes);
  const y = scale([0, most], [MAP.top - 8, 16]);
  let d = "";
  bins.forEach((bin, k) => {
    const size = sizes[bin.at(-1) ?? 0];
    d += `${k ? "L" : "M"}${left + k * cell} ${y(size)}H${left + (k + 1) * cell}`;
    chart.target(left + (k + 0.5) * cell, y(size), `${count(size, "component")} after ${namesOf(bin, run)}`);
  });
  chart.add("path", { class: "line c0", d });
  chart.text(left - 8, 20, `${most}`, "tick end");
  chart.text(left - 8, MAP.top - 6, "0", "tick end");
  chart.text(left, 10, "number of components", "axis");
}

const MAP = { top: 62, foot: 40 };

/** Of those that are there in the end, how much tasks use it; of the others, from when to when they were. */
function drawLife(chart, run, life, { bins, left, cell, tall, most, rowOf }) {
  const y = rowOf(life);
  const middle = y + tall / 2;
  const { born, component, into } = life;
  const at = (j) => bins.findIndex((bin) => j <= Number(bin.at(-1)));
  const [first, last] = [Math.max(at(born), 0), life.left === null ? -1 : at(life.left)];
  chart.text(left - 18, middle + 4, lifeName(run, life), "tick end");
  if (component === null && last >= 0) {
    const [x, width] = [left + first * cell, (last - first + 1) * cell];
    chart.add("rect", { class: "life", x, y: middle - 2, width, height: 4 });
    chart.target(x + width / 2, middle, `${lifeName(run, life)}\n${lifeStory(life)}`, { x, y, width, height: tall });
    const end = left + (last + 1) * cell;
    if (into !== null) chart.add("path", { class: "whisker merge", d: `M${end} ${middle}V${rowOf(run.lives[into]) + tall / 2}` });
    chart.mark(end, middle, into === null ? CROSS : CIRCLE, into === null ? "gone" : "merged", tall / 22);
  }
  if (component !== null)
    bins.forEach((bin, k) => {
      const use = mean(bin.map((j) => run.uses[j][component]));
      if (!known(use)) return;
      chart.cell(left + k * cell, y, cell, tall, use / most,
        `component ${component}, ${lifeStory(life)}\n${namesOf(bin, run)}: ${format(use, 2)}`);
    });
  if (born < 0) chart.mark(left - 8, middle, CIRCLE, "birth", tall / 22);
  else if (at(born) >= 0) chart.mark(left + (first + 0.5) * cell, middle, DIAMOND, "birth", tall / 22);
}

/**
 * Components (rows) over tasks (columns): when each came and went, and how much tasks use it. Of many tasks, a column
 * is the mean over several.
 * @param {RunData} run
 */
function mapPanel(run, positions, width) {
  const { lives } = run;
  const [left, right] = [widest(lives.map((life) => lifeName(run, life))) + 24, 16];
  const bins = binned(positions, Math.floor((width - left - right) / 4));
  const cell = Math.min(44, (width - left - right) / bins.length);
  const tall = lives.length > 14 ? 14 : 20;
  const most = Math.max(...positions.flatMap((j) => run.uses[j]), 0) || 1;
  const foot = MAP.top + tall * lives.length;
  const chart = new Chart(
    `${runLabel(run)}: when each of ${count(lives.length, "component")} came and went, and how much each of ` +
      `${count(positions.length, "task")} uses it.`,
    { width, height: foot + MAP.foot });
  drawSizes(chart, run, bins, left, cell);
  const every = Math.ceil(34 / cell);
  bins.forEach((bin, k) => {
    if (k % every === 0) chart.text(left + (k + 0.5) * cell, foot + 14, `${bin[0] + 1}`, "tick middle");
  });
  chart.text(left + (bins.length * cell) / 2, foot + 32, "task", "axis middle");
  const rowOf = (life) => MAP.top + lives.indexOf(life) * tall;
  for (const life of lives) drawLife(chart, run, life, { bins, left, cell, tall, most, rowOf });
  const some = (what) => lives.some(what);
  return panel("Components (rows) as tasks come (columns): the stronger the colour, the more a task uses it", chart.node,
    legend([
      { label: "there from the start", className: "birth", mark: CIRCLE, when: some(({ born }) => born < 0) },
      { label: "born with this task", className: "birth", mark: DIAMOND, when: some(({ born }) => born >= 0) },
      { label: "removed", className: "gone", mark: CROSS, when: some(({ left: end, into }) => end !== null && into === null) },
      { label: "merged into another", className: "merged", mark: CIRCLE, when: some(({ into }) => into !== null) },
    ].filter(({ when }) => when)));
}

figure({
  id: "structures",
  when: report.runs.some(hasStructures),
  title: "Structures",
  caption: "The map of components: when each came and went, and how much each task uses it, mean over depths. Below, " +
    "how much a task uses each component at each depth.",
  choosers: { stream: "Stream", method: "Method", seed: "Seed", tasks: "One by one" },
  draw(panels, controls) {
    const run = runFor(controls, hasStructures);
    if (!run) return null;
    const positions = chosenTasks(run).filter((j) => run.structures[j]?.length);
    if (!positions.length) return null;
    const width = columnsFor(panels, 1, 300);
    const some = windowAt(positions, controls.tasks.update(windowsOf(positions)));
    panels.append(mapPanel(run, positions, width), structurePanel(run, some, positions.length, width));
    const depth = Math.max(...positions.map((j) => run.structures[j][0].length));
    const there = run.lives.filter(({ component }) => component !== null);
    const bornWith = (c) => (there[c].born < 0 ? "the start" : `task ${there[c].born + 1}`);
    return {
      table: {
        caption: `Uses of components in ${runLabel(run)}.`,
        columns: ["Task", "Component", "Born with", ...range(depth).map((d) => `Depth ${d + 1}`), "Mean"],
        rows: positions.flatMap((j) => run.structures[j].map((uses, c) => [
          `${j + 1} ${run.tasks[j]}`, `${c}`, bornWith(c),
          ...range(depth).map((d) => format(uses[d], 3)), format(run.uses[j][c], 3)])),
      },
    };
  },
});
