// What is remembered: forgetting ratios, and every task after every task.

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

const MOST_CELLS = 60; // in a row: of more tasks, a cell is the mean over several

/** The mean over several tasks, after several were learned, has no standard error. @returns {Mean} */
function cellOf(row, column, at) {
  const all = row.flatMap((i) => column.map((j) => at(i, j))).filter(({ n }) => n);
  if (row.length * column.length === 1) return all[0] ?? { mean: null, error: null, n: 0 };
  return { mean: mean(all.map((value) => value.mean)), error: null, n: Math.max(0, ...all.map(({ n }) => n)) };
}

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
    const learnedAt = positions.filter((i) => runs.some((run) => run.after[i]?.length));
    if (!learnedAt.length) return null;
    const [columns, rows] = [binned(positions, MOST_CELLS), binned(learnedAt, MOST_CELLS)];
    const at = (i, j) => meanAndError(runs.map((run) => (taskChosen(run, j) ? run.after[i]?.[j] : null)));
    const values = rows.map((row) => columns.map((column) => cellOf(row, column, at)));
    const named = (bin) => (bin.length === 1 ? taskNameAt(runs, bin[0]) : `tasks ${rangesOf(bin.map((j) => j + 1))}`);
    const [names, learned] = [columns.map(named), rows.map(named)];
    const digits = digitsOf(s);

    const width = columnsFor(panels, 1, 300);
    const left = Math.min(Math.max(widest(learned), 80), 0.32 * width) + 10;
    const cell = Math.min(56, (width - left - 8) / columns.length);
    const tall = Math.max(10, Math.min(cell, 30));
    const chart = new Chart(
      `${labelOf(m)} on ${streamName(s)}: scores of ${count(positions.length, "task")} after each of them was learned.`,
      { width, height: 40 + tall * rows.length, left, top: 36 });
    const [low, high] = extent(values.flat().map((value) => value.mean), { room: 0 });
    const heat = (value) => (known(value) ? 0.08 + 0.92 * ((value - low) / (high - low || 1)) : null);
    chart.text(left, 11, "task evaluated", "axis");
    chart.text(left - 10, 29, "task learned", "axis end", left - 10);
    columns.forEach(([j], k) => {
      if (k % Math.ceil(26 / cell) === 0) chart.text(left + (k + 0.5) * cell, 29, `${j + 1}`, "tick middle");
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
      note: (positions.length > MOST_CELLS ? "A cell is the mean over several tasks. " : "") +
        `From ${format(low, digits)} (pale) to ${format(high, digits)} (strong), ${unitOf(s)}.`,
      table: {
        caption: `Scores of ${labelOf(m)} on ${streamName(s)}, mean over ${count(runs.length, "seed")}.`,
        columns: ["After", ...names],
        rows: rows.map((_, r) => [learned[r], ...values[r].map((value) => format(value.mean, digits))]),
      },
    };
  },
});
