// Learning curves.

/** Lines of one method: scores[j][i] of task j at x[i]; `ends`: for each task learned, its name and last i. */
function curvesOf(s, m) {
  const runs = countedRuns(s, m);
  const shown = (length) => range(length).filter((j) => runs.some((run) => taskChosen(run, j)));
  const curve = report.curves.find((each) => each.stream === s && each.method === m);
  if (curve) {
    const ends = curve.starts.map((_, j) => {
      const next = curve.starts[j + 1] ?? Infinity;
      return { name: `after ${j + 1}`, i: curve.epochs.findLastIndex((epoch) => epoch < next) };
    });
    const { epochs, scores, starts } = curve;
    return { m, runs, x: epochs, xLabel: "epoch", scores, starts, ends, shown: shown(scores.length) };
  }
  const { rows, scores } = afterwards(runs);
  const ends = rows.map((row, i) => ({ name: `after ${row + 1}`, i }));
  const x = rows.map((i) => i + 1);
  return { m, runs, x, xLabel: "tasks learned", scores, starts: [], ends, shown: shown(scores.length) };
}

/** scores[j][k] of task j after task rows[k] was learned, mean over runs. @param {RunData[]} runs */
function afterwards(runs) {
  const length = Math.max(0, ...runs.map((run) => run.after.length));
  const rows = range(length).filter((i) => runs.some((run) => run.after[i]?.length));
  const scores = range(length).map((j) =>
    rows.map((i) => mean(runs.map((run) => (taskChosen(run, j) ? run.after[i]?.[j] : null)))));
  return { rows, scores };
}

function curvePanel(s, { m, runs, x, xLabel, scores, starts, shown }, domain, width) {
  const chart = new Chart(
    `${labelOf(m)} on ${streamName(s)}: score of each of ${count(shown.length, "task")} as training goes on.`,
    { width, height: 244, left: 44, right: 12, top: 36, bottom: 40 });
  chart.xAxis(extent(x, { room: x.length > 1 ? 0.02 : 0.5 }), xLabel, { least: 1 });
  chart.yAxis(domain, unitOf(s));
  for (const start of starts) {
    const at = chart.x(start);
    chart.add("line", { class: "start", x1: at, x2: at, y1: chart.top, y2: chart.top + 5 });
  }
  // No more points than can be told apart.
  const few = (pixels) => {
    const step = Math.max(1, Math.ceil((pixels * x.length) / (chart.right - chart.left)));
    return [...x.keys()].filter((i) => i % step === 0 || i === x.length - 1);
  };
  const [drawn, read] = [few(2), few(8)];
  const beginnings = new Map(); // where lines begin: initial tasks do so together
  for (const j of shown) {
    const place = (i) => (known(scores[j][i]) ? [chart.x(x[i]), chart.y(scores[j][i])] : null);
    const points = drawn.map(place);
    const first = points.find(known);
    if (!first) continue;
    const colour = orderColour(scores.length > 1 ? j / (scores.length - 1) : 0);
    chart.line(points, "", { colour });
    if (points.filter(known).length === 1) chart.mark(first[0], first[1], CIRCLE, "").style.setProperty("--c", colour);
    beginnings.set(first[0], [...(beginnings.get(first[0]) ?? []), j + 1]);
    for (const i of read.filter((each) => known(scores[j][each]))) {
      const text = `${taskNameAt(runs, j)}\n${xLabel} ${x[i]}: ${format(scores[j][i], digitsOf(s))}`;
      chart.target(chart.x(x[i]), chart.y(scores[j][i]), text);
    }
  }
  if (beginnings.size <= 16)
    for (const [x0, numbers] of beginnings) chart.text(x0, chart.top - 5, rangesOf(numbers), "tick middle");
  return panel(labelOf(m), chart.node);
}

/** Each task, or some of them, in a panel a method. */
function curvesOfTasks(panels, s, lines, value) {
  const all = lines.map((each) => ({ ...each, shown: value === "tasks" ? each.shown : windowAt(each.shown, value) }));
  const domain = extent(all.flatMap(({ scores, shown }) => shown.flatMap((j) => scores[j])));
  const width = columnsFor(panels, all.length, 300);
  panels.append(...all.map((each) => curvePanel(s, each, domain, width)));
  const longest = all.reduce((a, b) => (b.ends.length > a.ends.length ? b : a)).ends;
  const columns = spread([...longest.keys()], MOST_CELLS);
  const fixed = all.some(({ starts }) => starts.length) && chosen.seeds.size < seeds.length;
  return {
    note: "One line a task, from the first (blue) to the last (orange); its number stands above where it begins." +
      (fixed ? " Curves over epochs are means over all seeds, not only the chosen ones." : ""),
    table: {
      caption: `Score of each task after each task was learned, ${unitOf(s)}.`,
      columns: ["Method", "Task", ...columns.map((i) => longest[i].name)],
      rows: all.flatMap(({ m, runs, scores, ends, shown }) => shown.map((j) =>
        [labelOf(m), taskNameAt(runs, j), ...columns.map((i) => format(scores[j][ends[i]?.i], digitsOf(s)))])),
    },
  };
}

figure({
  id: "curves",
  title: "Learning curves",
  caption: "How good tasks are as training goes on, mean over seeds.",
  choosers: { stream: "Stream", show: "Show" },
  draw(panels, controls) {
    const s = streamFor(controls.stream, (run) => run.after.some((row) => row.length));
    if (s === undefined) return null;
    const lines = chosenMethods().map((m) => curvesOf(s, m))
      .filter(({ x, runs, shown }) => x.length && runs.length && shown.length);
    if (!lines.length) return null;
    const most = lines.reduce((a, b) => (b.shown.length > a.shown.length ? b : a)).shown;
    const sums = most.length > 1 ? Object.entries(SUMMARIES).map(([value, { label }]) => [value, label]) : [];
    const value = String(controls.show.update(
      most.length > MOST_TASKS ? [...sums, ...windowsOf(most)] : [["tasks", "each task"], ...sums]));
    return value in SUMMARIES ? summaryOfTasks(panels, s, lines, SUMMARIES[value]) : curvesOfTasks(panels, s, lines, value);
  },
});
