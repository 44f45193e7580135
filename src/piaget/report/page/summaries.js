// Learning curves of many tasks, summed up: a line a method.

/** @typedef {{ x: number, mean: number, low: number, high: number, n: number }} Summed over n tasks, with quartiles */

/** The value below which a share q of these, sorted, lie; between two of them on a straight line. */
function quantile(sorted, q) {
  const at = q * (sorted.length - 1);
  const below = sorted[Math.floor(at)];
  return below + (at % 1) * (sorted[Math.ceil(at)] - below);
}

/** Values by x, [[x, value], ...], summed up. @returns {Summed[]} */
function summedUp(pairs) {
  const at = new Map();
  for (const [x, value] of pairs) {
    if (!at.has(x)) at.set(x, []);
    at.get(x).push(value);
  }
  return [...at].sort(([a], [b]) => a - b).map(([x, values]) => {
    values.sort((a, b) => a - b);
    return { x, mean: Number(mean(values)), low: quantile(values, 0.25), high: quantile(values, 0.75), n: values.length };
  });
}

const LEAST_SHARE = 0.1; // of the tasks, that a mean over tasks of one age is of

const SUMMARIES = {
  mean: {
    label: "mean over the tasks so far",
    xLabel: "tasks learned",
    yLabel: unitOf,
    note: "Mean over the tasks learned so far; the band has the middle half of them.",
    points: ({ rows, scores }) => summedUp(scores.flatMap((line) =>
      line.flatMap((score, k) => (known(score) ? [[rows[k] + 1, score]] : [])))),
  },
  age: {
    label: "change since a task was learned",
    xLabel: "tasks learned since then",
    yLabel: (s) => `change, ${report.streams[s].metric === "accuracy" ? "points" : unitOf(s)}`,
    note: "How much a task's score has changed since it was learned, mean over tasks; the band has the middle half of " +
      "them. As far as a tenth of the tasks have come.",
    points: ({ rows, scores }) => {
      const first = scores.map((line) => line.findIndex(known));
      const all = summedUp(scores.flatMap((line, j) =>
        line.flatMap((score, k) => (known(score) ? [[rows[k] - rows[first[j]], score - line[first[j]]]] : []))));
      const most = Math.max(...all.map(({ n }) => n));
      return all.filter(({ n }) => n >= LEAST_SHARE * most);
    },
  },
};

const MOST_BANDS = 3; // more of them hide each other

function summaryOfTasks(panels, s, lines, { xLabel, yLabel, note, points }) {
  const digits = digitsOf(s);
  const all = lines.map(({ m, runs }) => ({ m, summed: points(afterwards(runs)) })).filter(({ summed }) => summed.length);
  if (!all.length) return null;
  const width = columnsFor(panels, 1, 300);
  const chart = new Chart(
    `${streamName(s)}, ${yLabel(s)} by ${xLabel}: ` + all.map(({ m, summed }) =>
      `${labelOf(m)} from ${format(summed[0].mean, digits)} to ${format(summed[summed.length - 1].mean, digits)}`).join("; "),
    { width, height: 320, left: 48, right: 14, top: 22, bottom: 40 });
  const banded = all.length <= MOST_BANDS;
  const each = all.flatMap(({ summed }) => summed);
  chart.xAxis(extent(each.map(({ x }) => x), { room: 0.02 }), xLabel, { least: 1 });
  chart.yAxis(extent(each.flatMap((one) => (banded ? [one.low, one.high] : [one.mean]))), yLabel(s));
  for (const { m, summed } of all) {
    const edge = (key) => summed.map((one) => `${chart.x(one.x).toFixed(1)} ${chart.y(one[key]).toFixed(1)}`);
    if (banded) chart.add("path", { class: `band ${methodClass(m)}`, d: `M${[...edge("high"), ...edge("low").reverse()].join("L")}Z` });
  }
  for (const { m, summed } of all) {
    chart.line(summed.map((one) => [chart.x(one.x), chart.y(one.mean)]), methodClass(m), { dash: styles[m].dash });
    for (const one of spread(summed, Math.floor(width / 8)))
      chart.target(chart.x(one.x), chart.y(one.mean), `${labelOf(m)}\n${xLabel}: ${one.x}\n${format(one.mean, digits)}, half of ` +
        `${count(one.n, "task")} from ${format(one.low, digits)} to ${format(one.high, digits)}`);
  }
  panels.append(panel("", chart.node));
  return {
    legend: methodLegend(all.map(({ m }) => m)),
    note,
    table: {
      caption: `${streamName(s)}: ${yLabel(s)}, mean and quartiles over tasks.`,
      columns: ["Method", xLabel[0].toUpperCase() + xLabel.slice(1), "Mean", "Quarter below", "Quarter above", "Tasks"],
      rows: all.flatMap(({ m, summed }) => summed.map((one) => [
        labelOf(m), `${one.x}`, ...[one.mean, one.low, one.high].map((value) => format(value, digits)), `${one.n}`])),
    },
  };
}
