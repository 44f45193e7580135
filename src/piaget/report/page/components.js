// Figures of components: how they are used, tried and reused.

// --- structures ---

/** @param {RunData} run */
const hasStructures = (run) => run.structures.some((task) => task.length);

/** Uses of 0 to 1 are shown as they are; others (linear combinations) by the largest. */
function heatOfUses(uses) {
  const most = uses.reduce((a, use) => Math.max(a, Math.abs(use)), 0);
  const shared = uses.every((use) => use >= 0) && most <= 1;
  return (use) => use / (shared ? 1 : most || 1);
}

/** @param {RunData} run */
function structurePanel(run, positions, width) {
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
  return panel("Component (rows) by depth (columns), for each task", chart.node);
}

/** @param {RunData} run */
function timelinePanel(run, positions, width) {
  const born = run.births;
  const [left, right] = [textWidth(`component ${born.length}`) + 24, 44];
  const cell = Math.min(44, (width - left - right) / positions.length);
  const tall = 22;
  const heat = heatOfUses(positions.flatMap((j) => born.map((_, c) => run.uses[j][c] ?? 0)));
  const chart = new Chart(
    `${runLabel(run)}: when each of ${count(born.length, "component")} was born, and how much each task uses it.`,
    { width, height: 30 + tall * born.length + 6 });
  positions.forEach((j, k) => {
    if (cell > 18 || k % Math.ceil(20 / cell) === 0) chart.text(left + (k + 0.5) * cell, 20, `${j + 1}`, "tick middle");
  });
  chart.text(left + positions.length * cell + 8, 20, "age", "axis");
  born.forEach((birth, c) => {
    const y = 28 + c * tall;
    const age = run.structures.length - Math.max(birth, 0);
    chart.text(left - 18, y + 15, `component ${c}`, "tick end");
    chart.text(left + positions.length * cell + 8, y + 15, `${age}`, "tick");
    if (birth < 0) chart.mark(left - 8, y + 10.5, CIRCLE, "birth");
    positions.forEach((j, k) => {
      const use = run.uses[j][c];
      const began = birth < 0 ? "from the start" : `born with task ${birth + 1}`;
      chart.cell(left + k * cell, y, cell, tall, known(use) ? heat(use) : null,
        known(use) ? `component ${c}, ${began}\n${j + 1} ${run.tasks[j]}: ${format(use, 2)}` : "");
      if (j === birth) chart.mark(left + (k + 0.5) * cell, y + 10.5, DIAMOND, "birth");
    });
  });
  return panel("Birth, reuse and age of components (rows), by task (columns)", chart.node,
    legend([
      { label: "there from the start", className: "birth", mark: CIRCLE },
      { label: "born with this task", className: "birth", mark: DIAMOND },
    ]));
}

figure({
  id: "structures",
  when: report.runs.some(hasStructures),
  title: "Structures",
  caption: "How much a task uses a component at each depth: the stronger the colour, the more. Below, the mean " +
    "over depths as tasks come. Age: with how many tasks a component has lived.",
  choosers: { stream: "Stream", method: "Method", seed: "Seed" },
  draw(panels, controls) {
    const run = runFor(controls, hasStructures);
    if (!run) return null;
    const positions = chosenTasks(run).filter((j) => run.structures[j]?.length);
    if (!positions.length) return null;
    const width = columnsFor(panels, 1, 300);
    panels.append(structurePanel(run, positions, width), timelinePanel(run, positions, width));
    const depth = Math.max(...positions.map((j) => run.structures[j][0].length));
    const born = run.births;
    return {
      table: {
        caption: `Uses of components in ${runLabel(run)}.`,
        columns: ["Task", "Component", "Born with", ...range(depth).map((d) => `Depth ${d + 1}`), "Mean"],
        rows: positions.flatMap((j) => run.structures[j].map((uses, c) => [
          `${j + 1} ${run.tasks[j]}`, `${c}`, born[c] < 0 ? "the start" : `task ${born[c] + 1}`,
          ...range(depth).map((d) => format(uses[d], 3)), format(run.uses[j][c], 3)])),
      },
    };
  },
});

// --- candidates ---

/** @typedef {{ run: RunData, candidate: CandidateData }} Tried */

/** @param {{ s: number, tried: Tried[] }} what */
function candidatePanel({ s, tried }, width) {
  const { name, unit } = report.streams[s];
  const digits = digitsOf(s);
  const kept = tried.filter(({ candidate }) => candidate.kept).length;
  const chart = new Chart(
    `${name}: ${count(tried.length, "candidate component")} by validation score without and with it; ${kept} kept.`,
    { width, height: Math.min(width, 380), left: 48, right: 14, top: 22, bottom: 40 });
  const domain = extent(tried.flatMap(({ candidate }) => [candidate.with_it, candidate.without]));
  chart.xAxis(domain, `without it, ${unit}`);
  chart.yAxis(domain, "with it");
  // Lines from edge to edge of the frame.
  const factors = thresholdsOf(tried).map((threshold) => ({ slope: 1 + signOf(s) * threshold, look: "threshold" }));
  for (const { slope, look } of [{ slope: 1, look: "equal" }, ...factors]) {
    const ends = slope > 1 ? [domain[0], domain[1] / slope] : [domain[0] / slope, domain[1]];
    if (ends[0] < ends[1]) chart.line(ends.map((x) => [chart.x(x), chart.y(slope * x)]), look);
  }
  for (const { run, candidate } of tried) {
    const [x, y] = [chart.x(candidate.without), chart.y(candidate.with_it)];
    chart.mark(x, y, candidate.kept ? CIRCLE : CROSS, candidate.kept ? "kept" : "discarded");
    chart.target(x, y, `${candidate.kept ? "kept" : "discarded"}: ${run.tasks[candidate.task]}\n` +
      `with it ${format(candidate.with_it, digits)}, without ${format(candidate.without, digits)}\n` +
      `${labelOf(run.method)}, seed ${run.seed}`);
  }
  return panel(name, chart.node);
}

/** What it took to be kept, in the runs of these candidates. @param {Tried[]} tried */
const thresholdsOf = (tried) => [...new Set(tried.map(({ run }) => run.threshold).filter(known))];

figure({
  id: "candidates",
  when: report.runs.some((run) => run.candidates.length),
  title: "Candidate components",
  caption: "With every new task a candidate component is tried. Each mark is one: its validation score with it, " +
    "against that without. Dashed: by how much it had to improve the score to be kept, relative, as the runs were " +
    "set. On the dotted line, it changes nothing.",
  draw(panels) {
    const groups = chosenStreams().map((s) => ({
      s,
      tried: chosenRuns().filter((run) => run.stream === s).flatMap((run) => run.candidates
        .filter(({ task }) => taskChosen(run, task))
        .map((candidate) => ({ run, candidate }))),
    })).filter(({ tried }) => tried.length);
    if (!groups.length) return null;
    const width = columnsFor(panels, groups.length, 360);
    panels.append(...groups.map((group) => candidatePanel(group, Math.min(width, 520))));
    return {
      legend: legend([
        { label: "kept", className: "kept", mark: CIRCLE },
        { label: "discarded", className: "discarded", mark: CROSS },
        ...thresholdsOf(groups.flatMap(({ tried }) => tried)).map((threshold) => (
          { label: `${Number((100 * threshold).toFixed(6))}\u00a0% better`, className: "threshold", line: true })),
        { label: "the same", className: "equal", line: true },
      ]),
      table: {
        caption: "Candidate components and their validation scores.",
        columns: ["Stream", "Method", "Seed", "Task", "Without it", "With it", "Better by, %", "Kept"],
        rows: groups.flatMap(({ s, tried }) => tried.map(({ run, candidate }) => [
          streamName(s), labelOf(run.method), `${run.seed}`, `${candidate.task + 1} ${run.tasks[candidate.task]}`,
          format(candidate.without, digitsOf(s)), format(candidate.with_it, digitsOf(s)),
          format(candidate.gain, 1), candidate.kept ? "yes" : "no"])),
      },
    };
  },
});

// --- reuse ---

function reusePanel({ m, ranks }, most, width) {
  const chart = new Chart(
    `${labelOf(m)}: number of tasks that need each of ${count(ranks.length, "component")}, ` +
      `from ${format(ranks[0].mean)} to ${format(ranks.at(-1).mean)}.`,
    { width, height: 200, left: 36, right: 8, top: 22, bottom: 40 });
  const step = (chart.right - chart.left) / ranks.length;
  const every = Math.ceil(20 / step);
  chart.yAxis([0, most], "tasks");
  chart.xAxis([0.5, ranks.length + 0.5], "component, most needed first",
    { marks: ranks.map((_, c) => ({ value: c + 1, text: `${c}` })).filter((_, c) => c % every === 0) });
  ranks.forEach((value, c) => {
    const [x, y] = [chart.x(c + 1), chart.y(value.mean)];
    const wide = Math.min(0.7 * step, 34);
    const box = { x: x - wide / 2, y, width: wide, height: chart.bottom - y };
    chart.add("rect", { ...box, class: `bar ${methodClass(m)}` });
    chart.errorBar(value, { x });
    chart.target(x, y, `component ${c}\n${withError(value, 1)} tasks\n${count(value.n, "seed")}`, box);
  });
  return panel(labelOf(m), chart.node);
}

figure({
  id: "reuse",
  when: report.runs.some((run) => run.reused.length),
  title: "Reuse of components",
  caption: "How many tasks need a component: their final score is worse by more than 5\u00a0%, relative, when it is " +
    "removed. Components of a run are sorted; mean and standard error over seeds.",
  choosers: { stream: "Stream" },
  draw(panels, controls) {
    const s = streamFor(controls.stream, (run) => run.reused.length);
    if (s === undefined) return null;
    const shown = chosenMethods().map((m) => {
      const sorted = countedRuns(s, m).filter((run) => run.reused.length).map(reuse);
      const size = Math.max(0, ...sorted.map((each) => each.length));
      return { m, ranks: range(size).map((c) => meanAndError(sorted.map((each) => each[c]))) };
    }).filter(({ ranks }) => ranks.length);
    if (!shown.length) return null;
    const tops = shown.flatMap(({ ranks }) => ranks.map(({ mean: middle, error }) => (middle ?? 0) + (error ?? 0)));
    const most = Math.max(1, ...tops) * 1.05;
    const width = columnsFor(panels, shown.length, 260);
    panels.append(...shown.map((each) => reusePanel(each, most, width)));
    return {
      note: noteOnRuns(),
      table: {
        caption: `Number of tasks that need a component, ${streamName(s)}.`,
        columns: ["Method", "Component", "Tasks", "Seeds"],
        rows: shown.flatMap(({ m, ranks }) => ranks.map((value, c) =>
          [labelOf(m), `${c}`, withError(value, 1), `${value.n}`])),
      },
    };
  },
});
