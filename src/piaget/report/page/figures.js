// Figures of scores.

const labelOf = (m) => report.methods[m].label;
/** @param {RunData} run */
const runLabel = (run) => `${streamName(run.stream)}, ${labelOf(run.method)}, seed ${run.seed}`;

/** The chosen stream of a figure that shows one at a time; undefined if none has anything to show. */
function streamFor(control, has) {
  const fits = chosenStreams().filter((s) => report.runs.some((run) => run.stream === s && isChosen(run) && has(run)));
  const value = control.update(fits.map((s) => [s, streamName(s)]));
  return value === undefined ? undefined : Number(value);
}

/** The chosen run of a figure that shows one at a time. */
function runFor(controls, has) {
  let fits = chosenRuns().filter(has);
  /** @type {["stream" | "method" | "seed", (value: number) => string][]} */
  const choices = [["stream", streamName], ["method", labelOf], ["seed", String]];
  for (const [key, label] of choices) {
    const value = controls[key].update([...new Map(fits.map((run) => [run[key], label(run[key])]))]);
    fits = fits.filter((run) => `${run[key]}` === value);
  }
  return fits[0];
}

const methodLegend = (methods) =>
  legend(methods.map((m) => ({ label: labelOf(m), className: methodClass(m), ...styles[m], colour: null, line: true })));

// --- final and forward performance ---

/** `score`: a further one, or null for each stream's usual one. */
function performanceGroups(mode, score) {
  const methods = chosenMethods();
  if (score)
    return chosenStreams().map((s) => ({
      title: streamName(s), unit: score.name, digits: score.digits, sign: score.higher_is_better ? 1 : -1,
      lines: methods.map((m) =>
        ({ m, ...performanceOf(s, m, score.name), paper: null, tasks: tasksOf(s, m, score.name) })),
      majority: null,
    }));
  if (mode !== "gain")
    return chosenStreams().map((s) => ({
      title: streamName(s), unit: unitOf(s), digits: digitsOf(s), sign: signOf(s),
      lines: methods.map((m) => ({ m, ...performanceOf(s, m), paper: paperOf(s, m), tasks: tasksOf(s, m, "") })),
      majority: majorityOf(methods.flatMap((m) => countedRuns(s, m))),
    }));
  const streams = chosenStreams().filter(hasBaseline);
  const gains = streams.map((s) => methods.map((m) => gainsOf(s, m)));
  const group = (title, averages) => ({
    title, unit: "gain in %", digits: 1, sign: 1, majority: null,
    lines: methods.map((m, i) => ({ m, ...summary(averages(i)), paper: null, tasks: "" })),
  });
  const single = streams.map((s, k) => group(streamName(s), (i) => [...gains[k][i].values()]));
  if (streams.length < 2) return single;
  // As in the paper: each seed's mean over all streams.
  const overall = group("Mean over the streams", (i) =>
    seeds.filter((seed) => gains.every((stream) => stream[i].has(seed))).map((seed) => ({
      final: mean(gains.map((stream) => stream[i].get(seed).final)),
      forward: mean(gains.map((stream) => stream[i].get(seed).forward)),
    })));
  return [overall, ...single];
}

/** @typedef {{ m: number, final: Mean, forward: Mean, paper: number | null, tasks: string }} Line */

/**
 * @param {{ title: string, unit: string, digits: number, sign: number, lines: Line[], majority: number | null }}
 *   group
 */
function performancePanel({ title, unit, digits, sign, lines, majority }, width, mode) {
  const narrow = width < 460; // then names stand above the bars
  const left = narrow ? 8 : Math.min(widest(lines.map(({ m }) => labelOf(m))), 0.4 * width) + 12;
  const row = narrow ? 54 : 36;
  const [best] = ranked(lines, sign);
  const chart = new Chart(
    `${title}, ${unit}: final and forward performance of ${count(lines.length, "method")}. ` +
      (best ? `Best in the end: ${labelOf(best.m)}, ${withError(best.final, digits)}.` : ""),
    { width, height: row * lines.length + 52, left, right: 16, top: 6, bottom: 40 });
  const ends = [majority].concat(lines.flatMap(({ final, forward, paper }) =>
    [paper, ...[final, forward].flatMap(({ mean: middle, error }) =>
      (known(middle) ? [middle - (error ?? 0), middle + (error ?? 0)] : []))]));
  chart.xAxis(extent(ends, { zero: mode !== "points" }), unit);
  const zero = chart.x(0);
  if (mode !== "points") chart.add("line", { class: "zero", x1: zero, x2: zero, y1: chart.top, y2: chart.bottom });
  lines.forEach(({ m, final, forward, paper }, i) => {
    const top = chart.top + i * row;
    if (narrow) chart.text(left, top + 14, labelOf(m), "name", width - left);
    else chart.text(left - 8, top + 21, labelOf(m), "name end", left - 8);
    Object.entries({ final, forward }).forEach(([name, value], k) => {
      if (!known(value.mean)) return;
      const look = name === "forward" ? "hollow" : "";
      const y = top + (narrow ? 20 : 4) + 14 * k;
      const x = chart.x(value.mean);
      if (mode !== "points") chart.bar(zero, x, y, 12, `${methodClass(m)} ${look}`);
      chart.errorBar(value, { y: y + 6 });
      if (mode === "points") chart.mark(x, y + 6, styles[m].mark, `${methodClass(m)} ${look}`);
      const tipText = `${labelOf(m)}\n${name}: ${withError(value, digits)}\n${count(value.n, "seed")}`;
      const box = mode === "points" ? undefined : { x: Math.min(zero, x), y, width: Math.abs(x - zero), height: 12 };
      chart.target(x, y + 6, tipText, box);
    });
    if (known(paper)) {
      const y = top + (narrow ? 26 : 10);
      chart.mark(chart.x(paper), y, DIAMOND, "paper");
      chart.target(chart.x(paper), y, `${labelOf(m)}\nin the paper: ${format(paper, digits)}`);
    }
  });
  if (known(majority)) {
    const x = chart.x(majority);
    chart.add("line", { class: "line majority", x1: x, x2: x, y1: chart.top, y2: chart.bottom });
    chart.target(x, chart.top + 4, `most frequent class alone: ${format(majority, digits)}`);
  }
  return panel(title, chart.node);
}

figure({
  id: "performance",
  title: "Final and forward performance",
  caption: "Forward: a task's score right after it was learned. Final: its score after all tasks. Mean over tasks, " +
    "then mean and standard error over seeds. Gain: by how many percent it is better than the final score of NFT " +
    "No Comp. of the same seed. Dashed line: accuracy of always answering the most frequent training class. AUC: " +
    "area under the ROC curve of binary tasks. Log-loss: mean cross-entropy; lower is better.",
  choosers: { score: "Score", as: "Show as" },
  draw(panels, controls) {
    const there = report.scores.filter(({ name }) => chosenRuns().some((run) => run.further[name]));
    const usual = [...new Set(chosenStreams().map((s) => report.streams[s].metric))].join(" or ");
    const name = controls.score.update([["", usual], ...there.map((each) => [each.name, each.name])]);
    const score = there.find((each) => each.name === name) ?? null;
    const modes = [["bars", "bars from zero"], ["points", "points, zoomed in"]];
    if (!score && chosenStreams().some((s) => hasBaseline(s))) modes.push(["gain", "gain over NFT No Comp."]);
    const mode = controls.as.update(modes);
    const groups = performanceGroups(mode, score)
      .map((group) => ({ ...group, lines: group.lines.filter((line) => line.final.n) }))
      .filter((group) => group.lines.length);
    if (!groups.length) return null;
    const width = columnsFor(panels, groups.length, 440);
    panels.append(...groups.map((group) => performancePanel(group, width, mode)));
    const mark = mode === "points" ? { mark: CIRCLE } : {};
    const inPaper = groups.some((group) => group.lines.some((line) => known(line.paper)));
    return {
      legend: legend([
        { label: "final", className: "c6", ...mark }, { label: "forward", className: "c6 hollow", ...mark },
        ...(inPaper ? [{ label: "final in the paper", className: "paper", mark: DIAMOND }] : []),
        ...(groups.some(({ majority }) => known(majority))
          ? [{ label: "most frequent class alone", className: "majority", line: true }] : []),
      ]),
      note: noteOnRuns(),
      table: {
        caption: "Mean over tasks; mean ± standard error over seeds.",
        columns: ["Stream", "Method", "Seeds", "Forward", "Final", "Paper's final", "In", "Tasks", "Majority"],
        rows: groups.flatMap(({ title, unit, digits, lines, majority }) =>
          lines.map(({ m, final, forward, paper, tasks: of }) => [
            title, labelOf(m), `${final.n}`, withError(forward, digits), withError(final, digits),
            format(paper, digits), unit, of, format(majority, digits)])),
      },
    };
  },
});

// --- learning curves ---

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
  const length = Math.max(0, ...runs.map((run) => run.after.length));
  const rows = range(length).filter((i) => runs.some((run) => run.after[i]?.length));
  const scores = range(length).map((j) => rows.map((i) => mean(runs.map((run) => run.after[i]?.[j]))));
  const ends = rows.map((row, i) => ({ name: `after ${row + 1}`, i }));
  const x = rows.map((i) => i + 1);
  return { m, runs, x, xLabel: "tasks learned", scores, starts: [], ends, shown: shown(length) };
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

figure({
  id: "curves",
  title: "Learning curves",
  caption: "One line a task, from the first (blue) to the last (orange); its number stands above where it begins. " +
    "Mean over seeds.",
  choosers: { stream: "Stream" },
  draw(panels, controls) {
    const s = streamFor(controls.stream, (run) => run.after.some((row) => row.length));
    if (s === undefined) return null;
    const all = chosenMethods().map((m) => curvesOf(s, m))
      .filter(({ x, runs, shown }) => x.length && runs.length && shown.length);
    if (!all.length) return null;
    const domain = extent(all.flatMap(({ scores, shown }) => shown.flatMap((j) => scores[j])));
    const width = columnsFor(panels, all.length, 300);
    panels.append(...all.map((each) => curvePanel(s, each, domain, width)));
    const { ends: columns } = all.reduce((a, b) => (b.ends.length > a.ends.length ? b : a));
    const fixed = all.some(({ starts }) => starts.length) && chosen.seeds.size < seeds.length;
    return {
      note: fixed ? "Curves over epochs are means over all seeds, not only the chosen ones." : "",
      table: {
        caption: `Score of each task after each task was learned, ${unitOf(s)}.`,
        columns: ["Method", "Task", ...columns.map(({ name }) => name)],
        rows: all.flatMap(({ m, runs, scores, ends, shown }) => shown.map((j) =>
          [labelOf(m), taskNameAt(runs, j), ...columns.map((_, i) => format(scores[j][ends[i]?.i], digitsOf(s)))])),
      },
    };
  },
});

// --- forgetting ---

function forgettingPanel({ s, lines }, width) {
  const { name } = report.streams[s];
  const ratios = lines.flatMap(({ points }) => points.map((point) => point.mean)).filter(known);
  const length = Math.max(...lines.map(({ points }) => points.length));
  const chart = new Chart(
    `${name}: forgetting ratio of ${count(lines.length, "method")} by task position, ` +
      `from ${format(Math.min(...ratios), 2)} to ${format(Math.max(...ratios), 2)}.`,
    { width, height: 280, left: 46, right: 14, top: 22, bottom: 40 });
  chart.xAxis([0.5, length + 0.5], "task position", { least: 1 });
  chart.yAxis(extent([1, ...ratios]), "ratio");
  chart.add("line", { class: "zero", x1: chart.left, x2: chart.right, y1: chart.y(1), y2: chart.y(1) });
  for (const { m, runs, points } of lines) {
    const places = points.map(({ mean: ratio }, j) => (known(ratio) ? [chart.x(j + 1), chart.y(ratio)] : null));
    chart.line(places, methodClass(m), { dash: styles[m].dash });
    places.forEach((place, j) => {
      if (!place) return;
      if (length <= 25 || j % 5 === 0) chart.mark(...place, styles[m].mark, methodClass(m));
      chart.target(...place,
        `${labelOf(m)}\n${taskNameAt(runs, j)}: ${withError(points[j], 3)}\n${count(points[j].n, "seed")}`);
    });
  }
  return panel(name, chart.node);
}

figure({
  id: "forgetting",
  title: "Forgetting",
  caption: "The ratio of a task's accuracy when it was first trained to its accuracy when all tasks had been " +
    "trained, mean over seeds. 1: nothing forgotten; above 1: forgotten. For errors, the ratio is the other way " +
    "up, so that it reads the same.",
  draw(panels) {
    const groups = chosenStreams().map((s) => ({
      s,
      lines: chosenMethods().map((m) => ({ m, runs: countedRuns(s, m) }))
        .map((line) => ({ ...line, points: ratiosByPosition(line.runs) }))
        .filter(({ points }) => points.some((point) => point.n)),
    })).filter(({ lines }) => lines.length);
    if (!groups.length) return null;
    const width = columnsFor(panels, groups.length, 400);
    panels.append(...groups.map((group) => forgettingPanel(group, width)));
    return {
      legend: methodLegend([...new Set(groups.flatMap(({ lines }) => lines.map(({ m }) => m)))]),
      note: noteOnRuns(),
      table: {
        caption: "Forgetting ratio, mean ± standard error over seeds.",
        columns: ["Stream", "Method", "Task", "Ratio", "Seeds"],
        rows: groups.flatMap(({ s, lines }) => lines.flatMap(({ m, runs, points }) => points.flatMap((point, j) =>
          point.n ? [[streamName(s), labelOf(m), taskNameAt(runs, j), withError(point, 3), `${point.n}`]] : []))),
      },
    };
  },
});

// --- transfer matrix ---

figure({
  id: "matrix",
  title: "Transfer matrix",
  caption: "Score of each task (columns) after each task was learned (rows), mean over seeds. Down a column, a task " +
    "is remembered, forgotten or improved. The initial tasks are learned together, so their rows are one.",
  choosers: { stream: "Stream", method: "Method" },
  draw(panels, controls) {
    const has = (run) => run.after.some((row) => row.length);
    const s = streamFor(controls.stream, has);
    if (s === undefined) return null;
    const fits = chosenMethods().filter((m) => countedRuns(s, m).some(has));
    const m = Number(controls.method.update(fits.map((each) => [each, labelOf(each)])));
    const runs = countedRuns(s, m);
    const positions = range(Math.max(...runs.map((run) => run.tasks.length)))
      .filter((j) => runs.some((run) => taskChosen(run, j)));
    const rows = positions.filter((i) => runs.some((run) => run.after[i]?.length));
    const at = (i, j) => meanAndError(runs.map((run) => (taskChosen(run, j) ? run.after[i]?.[j] : null)));
    const values = rows.map((i) => positions.map((j) => at(i, j)));
    const names = positions.map((j) => taskNameAt(runs, j));
    const learned = rows.map((i) => taskNameAt(runs, i));
    const digits = digitsOf(s);
    if (!rows.length) return null;

    const width = columnsFor(panels, 1, 300);
    const left = Math.min(Math.max(widest(learned), 80), 0.32 * width) + 10;
    const cell = Math.min(56, (width - left - 8) / positions.length);
    const tall = Math.max(10, Math.min(cell, 30));
    const chart = new Chart(
      `${labelOf(m)} on ${streamName(s)}: scores of ${count(positions.length, "task")} after each of them was learned.`,
      { width, height: 40 + tall * rows.length, left, top: 36 });
    const [low, high] = extent(values.flat().map((value) => value.mean), { room: 0 });
    const heat = (value) => (known(value) ? 0.08 + 0.92 * ((value - low) / (high - low || 1)) : null);
    chart.text(left, 11, "task evaluated", "axis");
    chart.text(left - 10, 29, "task learned", "axis end", left - 10);
    positions.forEach((j, k) => {
      if (cell > 18 || k % Math.ceil(20 / cell) === 0) chart.text(left + (k + 0.5) * cell, 29, `${j + 1}`, "tick middle");
    });
    rows.forEach((_, r) => {
      const y = chart.top + r * tall;
      if (tall >= 13 || r % 2 === 0) chart.text(left - 10, y + tall / 2 + 4, learned[r], "tick end", left - 10);
      values[r].forEach((value, k) => {
        const roomy = cell >= textWidth(format(high, digits)) + 6 && tall >= 18;
        chart.cell(left + k * cell, y, cell, tall, heat(value.mean),
          value.n ? `${names[k]}\nafter ${learned[r]}: ${withError(value, digits)}\n${count(value.n, "seed")}` : "",
          roomy && value.n ? format(value.mean, digits) : "");
      });
    });
    panels.append(panel("", chart.node));
    return {
      note: `From ${format(low, digits)} (pale) to ${format(high, digits)} (strong), ${unitOf(s)}.`,
      table: {
        caption: `Scores of ${labelOf(m)} on ${streamName(s)}, mean over ${count(runs.length, "seed")}.`,
        columns: ["After", ...names],
        rows: rows.map((_, r) => [learned[r], ...values[r].map((value) => format(value.mean, digits))]),
      },
    };
  },
});
