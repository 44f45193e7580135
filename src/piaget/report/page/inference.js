// Tasks that nobody named: which were taken for which.

/** @param {RunData} run */
const hasInference = (run) => run.inference !== null;

const MOST_PAIRS = 8; // that are listed
const percent = (value) => `${format(value, 1)}\u00a0%`;

/**
 * Means over runs: shares[i][j] of the inputs of task i that are taken for those of task j, and none[i] for those of
 * none. Null: no run tells of the task. `ofRuns(i, j)`: the numbers of all runs, from which there are errors.
 * @param {RunData[]} runs
 */
function confusionOf(runs) {
  const size = Math.max(...runs.map((run) => run.tasks.length));
  const tells = (run, i) => known(run.inference.none[i]) && taskChosen(run, i);
  const wholes = runs.map((run) => {
    const whole = range(size).map((i) => (tells(run, i) ? new Float64Array(size) : null));
    for (const [i, j, share] of run.inference?.taken ?? []) {
      const line = whole[i];
      if (line) line[j] = share;
    }
    return whole;
  });
  const ofRuns = (i, j) => wholes.map((whole) => whole[i]?.[j]);
  const mean0 = (i) => (wholes.some((whole) => whole[i]) ? range(size).map((j) => Number(mean(ofRuns(i, j)))) : null);
  const of = (key) => range(size).map((i) => mean(runs.map((run) => (tells(run, i) ? run.inference?.[key][i] : null))));
  return { shares: range(size).map(mean0), none: of("none"), inferred: of("inferred"), inTens: of("in_tens"), ofRuns };
}

/** Pairs of different tasks, the most confused first: [i, j, share]. */
const confusedPairs = ({ shares }) => shares
  .flatMap((line, i) => (line ? line.flatMap((share, j) => (share > 0 && i !== j ? [[i, j, share]] : [])) : []))
  .sort((a, b) => b[2] - a[2]);

/** What there is to see, in sentences. */
function inferenceInWords(whole, pairs, positions, runs) {
  const over = (values) => mean(positions.map((i) => values[i]));
  const own = Number(mean(positions.map((i) => whole.shares[i]?.[i])));
  const none = Number(over(whole.none));
  const sure = [[over(whole.inferred), "if one must be named"], [over(whole.inTens), "from ten inputs at once"]]
    .flatMap(([share, how]) => (known(share) ? [`${percent(share)} ${how}`] : []));
  const name = (i) => plainNameAt(runs, i);
  const most = pairs.slice(0, 2).map(([i, j, share]) => `${name(i)} for ${name(j)} (${percent(share)})`);
  return [
    `Of the inputs of ${count(positions.length, "task")}, ${percent(own)} are taken for those of their own task, ` +
      `${percent(Math.max(0, 100 - own - none))} for those of another one, and ${percent(none)} for none of them.`,
    sure.length ? ` The right task is told of ${sure.join(", ")}.` : "",
    most.length ? ` Taken for another most often: ${most.join("; ")}.` : " No task is taken for another.",
    runs.length > 1 ? ` Means over ${count(runs.length, "seed")}.` : "",
  ].join("");
}

/**
 * Columns of the map: bins of the chosen tasks, then what is left, and none of them. `share(row)` is the mean, over the
 * tasks of a row, of what they have in the column.
 */
function confusionColumns(whole, positions, runs, width) {
  const named = (bin) => (bin.length === 1 ? taskNameAt(runs, bin[0]) : `tasks ${rangesOf(bin.map((j) => j + 1))}`);
  const sum = (i, bin) => bin.reduce((total, j) => total + Number(whole.shares[i]?.[j]), 0);
  const bins = binned(positions, Math.min(MOST_CELLS, Math.floor(width / 10)));
  const left = range(whole.shares.length).filter((j) => !positions.includes(j));
  const over = (row, value) => mean(row.map(value));
  return {
    bins, named,
    columns: [
      ...bins.map((bin) => ({ mark: `${bin[0] + 1}`, name: named(bin), bin, share: (row) => over(row, (i) => sum(i, bin)) })),
      ...(left.length ? [{ mark: "other", name: "other tasks", bin: left, share: (row) => over(row, (i) => sum(i, left)) }] : []),
      { mark: "none", name: "none of them", bin: [], share: (row) => over(row, (i) => whole.none[i]) },
    ],
  };
}

function confusionMap(whole, positions, runs, label, width) {
  const { bins, named, columns } = confusionColumns(whole, positions, runs, width);
  const names = bins.map(named);
  const left = Math.min(Math.max(widest(names), 80), 0.3 * width) + 10;
  const [gap, last] = [8, columns.length - bins.length]; // what is not a task stands apart
  const broad = Math.max(30, widest(["other", "none"]) + 4);
  const cell = Math.min(44, (width - left - 8 - last * (broad + gap)) / bins.length);
  const tall = Math.max(9, Math.min(cell, 26));
  const chart = new Chart(label, { width, height: 40 + tall * bins.length, left, top: 36 });
  const placeOf = (k) => (k < bins.length
    ? { x: left + k * cell, wide: cell }
    : { x: left + bins.length * cell + (k - bins.length) * (broad + gap) + gap, wide: broad });
  chart.text(left, 11, "taken for", "axis");
  chart.text(left - 10, 29, "inputs of", "axis end", left - 10);
  columns.forEach(({ mark }, k) => {
    const { x, wide } = placeOf(k);
    if (k >= bins.length || k % Math.ceil(26 / cell) === 0) chart.text(x + wide / 2, 29, mark, "tick middle");
  });
  bins.forEach((row, r) => {
    const y = chart.top + r * tall;
    if (tall >= 13 || r % 2 === 0) chart.text(left - 10, y + tall / 2 + 4, names[r], "tick end", left - 10);
    columns.forEach((column, k) => {
      const [{ x, wide }, share] = [placeOf(k), column.share(row)];
      if (!known(share)) return;
      const own = row.length > 1 && column.bin === row
        ? `\nof their own task: ${percent(mean(row.map((i) => whole.shares[i]?.[i])))}` : "";
      const error = row.length === 1 && column.bin.length === 1 && runs.length > 1
        ? ` ± ${format(meanAndError(whole.ofRuns(row[0], column.bin[0])).error, 1)}` : "";
      const text = wide >= 34 && tall >= 18 && share >= 0.05 ? format(share, share < 10 ? 1 : 0) : "";
      chart.cell(x, y, wide, tall, Math.sqrt(Math.min(share, 100) / 100),
        `${names[r]}\ntaken for ${column.name}: ${format(share, 1)}${error} %${own}`, text);
    });
  });
  return chart.node;
}

function confusedList(pairs, runs) {
  if (!pairs.length) return null;
  return panel("Taken for another most often", element("ol", { class: "pairs" }, ...pairs.slice(0, MOST_PAIRS)
    .map(([i, j, share]) => element("li", {}, `${taskNameAt(runs, i)}, taken for ${taskNameAt(runs, j)}: ${percent(share)}`))));
}

const confusionFigure = figure({
  id: "confusion",
  when: report.runs.some(hasInference),
  title: "Tasks taken for each other",
  caption: "Test inputs of each task (rows), when nobody says of which task they are: the share that is taken for those " +
    "of each task (columns), or for those of none. On the diagonal, it is right. Mean over seeds, by the tasks' places.",
  choosers: { stream: "Stream", method: "Method" },
  draw(panels, controls) {
    const s = streamFor(controls.stream, hasInference);
    if (s === undefined) return null;
    const fits = chosenMethods().filter((m) => countedRuns(s, m).some(hasInference));
    if (!fits.length) return null;
    const m = Number(controls.method.update(fits.map((each) => [each, labelOf(each)])));
    const runs = countedRuns(s, m).filter(hasInference);
    const whole = confusionOf(runs);
    const positions = [...whole.shares.keys()].filter((i) => whole.shares[i]);
    if (!positions.length) return null;
    const pairs = confusedPairs(whole);
    const words = inferenceInWords(whole, pairs, positions, runs);
    const width = columnsFor(panels, 1, 300);
    panels.append(
      element("p", { class: "words" }, words),
      panel("", confusionMap(whole, positions, runs, `${labelOf(m)} on ${streamName(s)}. ${words}`, width)),
      ...[confusedList(pairs, runs)].filter(known));
    const own = positions.map((i) => [i, i, Number(whole.shares[i]?.[i])]);
    const name = (i) => taskNameAt(runs, i);
    return {
      note: (positions.length > MOST_CELLS ? "A row and a column are of several tasks; to see certain ones, choose them above. " : "") +
        "The colour grows with the root of the share, so that small ones are seen.",
      table: {
        caption: `${labelOf(m)} on ${streamName(s)}: share of a task's inputs that are taken for those of another one, of ` +
          "their own, or of none, in %.",
        columns: ["Inputs of", "Taken for", "Share"],
        rows: [
          ...pairs.map(([i, j, share]) => [name(i), name(j), format(share, 1)]),
          ...positions.map((i) => [name(i), "none of them", format(whole.none[i], 1)]),
          ...own.map(([i, , share]) => [name(i), "their own", format(share, 1)]),
        ],
      },
    };
  },
});
