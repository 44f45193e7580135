// Components that were tried, and how many tasks need each.

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
