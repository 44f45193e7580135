// Figures about scores, trust and columns.

const COLUMNS_SHOWN = 20;
const FEW = 10; // rows of a bin below which its share says little
const AXES = { binary: "change of log-odds", multiclass: "change of log-odds", regression: "change, in standard deviations" };

/** A square as large as there is room for, within reason. */
function square(panels, label, most = 440) {
  const width = Math.min(columnsFor(panels, 1, 300), most);
  return new Chart(label, { width, height: width, left: 48, right: 14, top: 22, bottom: 40 });
}

const better = (gain) => (gain > 0 ? "better" : gain < 0 ? "worse" : "equal");

/** A group's mark: by shape, too, whether it is better than the simple model. */
const GAIN_MARKS = {
  better: { mark: CIRCLE, className: "c0", label: "better than the simple model" },
  equal: { mark: DIAMOND, className: "c6", label: "equal" },
  worse: { mark: 4, className: "c3", label: "worse" },
  unknown: { mark: CROSS, className: "c6", label: "not compared" },
};

const gainMark = (gain) => GAIN_MARKS[known(gain) ? better(gain) : "unknown"];

const gainLegend = (gains) =>
  legend(Object.values(GAIN_MARKS).filter((each) => gains.some((gain) => gainMark(gain) === each)));

// --- piaget beside the best simple model ---

function drawPairs(panels) {
  const { name, digits, best, higher_is_better: higher } = metric();
  const groups = run.groups.filter((group) => known(scoreOf(group).gain)); // both have a score, then
  if (!groups.length) return null;
  const chart = square(panels, `${name} of ${count(groups.length, "group")}: piaget against ${modelName(best)}`);
  const domain = extent(groups.flatMap((group) => [scoreOf(group).piaget, scoreOf(group).simple]));
  chart.xAxis(domain, `${name}, simple model`);
  chart.yAxis(domain, `${name}, piaget`);
  chart.line(domain.map((v) => [chart.x(v), chart.y(v)]), "equal");
  const points = [];
  for (const group of groups) {
    const { piaget, simple, gain } = scoreOf(group);
    if (!known(simple) || !known(piaget) || !known(gain)) continue;
    const [x, y] = [chart.x(simple), chart.y(piaget)];
    const { mark, className } = gainMark(gain);
    chart.mark(x, y, mark, className);
    chart.target(x, y, `${group.name}: piaget ${format(piaget, digits)}, simple model ${format(simple, digits)}`);
    points.push({ name: group.name, x, y, gain: Math.abs(gain) });
  }
  nameMarks(chart, points.sort((a, b) => b.gain - a.gain)); // the most different first
  panels.append(panel("", chart.node));
  return {
    legend: gainLegend(groups.map((group) => scoreOf(group).gain)),
    note: `Each mark is a group. On the dotted line both are equal; ${higher ? "above" : "below"} it, piaget is better. ${HIDDEN_NAMES}`,
  };
}

// --- calibration ---

function drawBins(panels) {
  const of = run.positive ? `rows with ${run.target}=${run.positive}` : "rows whose predicted class is right";
  const chart = square(panels, `Share of ${of}, against the predicted probability`);
  const marks = ["0", "0.2", "0.4", "0.6", "0.8", "1"].map((text) => ({ value: Number(text), text }));
  chart.xAxis([0, 1], "predicted probability", { marks });
  chart.yAxis([0, 1], `share of ${of}`, { marks });
  chart.line([0, 1].map((v) => [chart.x(v), chart.y(v)]), "equal");
  const most = Math.max(...run.bins.map(({ rows }) => rows));
  chart.line(run.bins.filter(({ rows }) => rows >= FEW)
    .map(({ predicted, observed }) => [chart.x(predicted), chart.y(observed)]), "c0");
  for (const { predicted, observed, rows, error } of run.bins) {
    const [x, y] = [chart.x(predicted), chart.y(observed)];
    const ends = [Math.max(0, observed - error), Math.min(1, observed + error)].map(chart.y);
    const faint = rows < FEW ? "faint" : "";
    chart.add("path", { class: `whisker ${faint}`, d: `M${x} ${ends[0]}V${ends[1]}` });
    chart.mark(x, y, CIRCLE, faint ? "hollow faint c6" : "c0", 0.7 + 0.8 * Math.sqrt(rows / most));
    chart.target(x, y, `predicted ${percent(predicted, 1)}, observed ${percent(observed, 1)}: ${count(rows, "row")}`);
  }
  panels.append(panel("", chart.node));
  return {
    note: run.bins.some(({ rows }) => rows < FEW)
      ? `Hollow, faint marks stand for fewer than ${FEW} rows: they say little, and the line leaves them out.` : "",
    table: {
      caption: "Rows by their predicted probability.",
      columns: ["Predicted", "Observed", "Standard error", "Rows"],
      rows: run.bins.map(({ predicted, observed, error, rows }) =>
        [cell(predicted, 3), cell(observed, 3), cell(error, 3), cell(rows, 0)]),
    },
  };
}

function drawCoverage(panels) {
  const chart = square(panels, "Share of values within their intervals, against the share that ought to be");
  const values = run.coverage.flatMap(({ level, observed }) => [level, observed]);
  const domain = [Math.max(0, Math.min(...values) - 0.05), 1];
  chart.xAxis(domain, "share that ought to lie within");
  chart.yAxis(domain, "share that does");
  chart.line(domain.map((v) => [chart.x(v), chart.y(v)]), "equal");
  chart.line(run.coverage.map(({ level, observed }) => [chart.x(level), chart.y(observed)]), "c0");
  for (const { level, observed } of run.coverage) {
    chart.mark(chart.x(level), chart.y(observed), CIRCLE, "c0");
    chart.target(chart.x(level), chart.y(observed), `intervals of ${percent(level)} hold ${percent(observed, 1)}`);
  }
  panels.append(panel("", chart.node));
  return {
    table: {
      caption: "Intervals, and the share of test rows whose value lies within.",
      columns: ["Interval", "Holds"],
      rows: run.coverage.map(({ level, observed }) => [
        { text: percent(level), value: level }, { text: percent(observed, 1), value: observed }]),
    },
  };
}

// --- columns ---

/** The mean of groups, which has a sign, and around it how much groups differ. */
function drawAround(chart, y, { common, differs }) {
  const ends = [common - differs, common + differs].map(chart.x);
  chart.add("rect", { class: "bar hollow c0", x: ends[0], y: y - 6, width: Math.max(ends[1] - ends[0], 1), height: 12 });
  chart.mark(chart.x(common), y, CIRCLE, "c0");
}

/** Two sizes without a sign, one below the other: they are of several classes at once. */
function drawSizes(chart, y, { common, differs }) {
  [common, differs].forEach((size, i) => chart.bar(chart.x(0), chart.x(size), y - 8 + 8 * i, 7, i ? "hollow c0" : "c0"));
}

const [STEP, TOP] = [24, 8]; // of lines of columns

/** A line for each of the names, with an axis below. */
function columnChart(panels, label, names, domain) {
  const width = Math.min(columnsFor(panels, 1, 300), 760);
  const left = Math.min(widest(names) + 14, 0.36 * width);
  const height = TOP + STEP * names.length + 40;
  const chart = new Chart(label, { width, height, left, right: 14, top: TOP, bottom: 40 });
  chart.xAxis(domain, AXES[run.kind], { marks: ticks(domain, (chart.right - chart.left) / 50) });
  chart.add("line", { class: "zero", x1: chart.x(0), x2: chart.x(0), y1: chart.top, y2: chart.bottom });
  names.forEach((name, i) => chart.text(chart.left - 8, TOP + STEP * (i + 0.5) + 4, name, "end", left - 10));
  return chart;
}

const notDrawn = (columns) => {
  const rest = columns.length - COLUMNS_SHOWN;
  return rest > 0 ? `The ${COLUMNS_SHOWN} that do most are drawn; ${rest} more are in the numbers.` : "";
};

function drawMoved(panels) {
  const shownColumns = run.moved.slice(0, COLUMNS_SHOWN);
  const domain = extent(shownColumns.map(({ moves }) => moves), { zero: true });
  const chart = columnChart(panels, "How far answers move, by column", shownColumns.map(({ name }) => name), domain);
  shownColumns.forEach(({ name, moves }, i) => {
    const y = TOP + STEP * (i + 0.5);
    chart.bar(chart.x(0), chart.x(moves), y - 6, 12, "c0");
    chart.target(chart.x(moves), y, `${name}: ${format(moves, 2)}`, { x: 0, y: y - STEP / 2, width: chart.width, height: STEP });
  });
  panels.append(panel("", chart.node));
  return {
    note: notDrawn(run.moved),
    table: {
      caption: "How far answers move if a column's values are exchanged among rows.",
      columns: ["Column", "Answers move by"],
      rows: run.moved.map(({ name, moves }) => [name, cell(moves, 3)]),
    },
  };
}

function drawColumns(panels) {
  const shownColumns = run.columns.slice(0, COLUMNS_SHOWN);
  const sizes = run.kind === "multiclass";
  const domain = sizes
    ? extent(shownColumns.flatMap(({ common, differs }) => [common, differs]), { zero: true })
    : extent(shownColumns.flatMap(({ common, differs }) => [common - differs, common + differs, 0]));
  const chart = columnChart(panels, `${run.unit}, by column`, shownColumns.map(({ name }) => name), domain);
  shownColumns.forEach((column, i) => {
    const { name, common, differs } = column;
    const y = TOP + STEP * (i + 0.5);
    (sizes ? drawSizes : drawAround)(chart, y, column);
    const told = (sizes ? cell : signed)(common, 2).text;
    chart.target(chart.x(common), y, `${name}: ${told} in the mean of groups, which differ by ${sizes ? "" : "± "}${format(differs, 2)}`,
      { x: 0, y: y - STEP / 2, width: chart.width, height: STEP });
  });
  panels.append(panel("", chart.node));
  return {
    legend: sizes ? legend([{ label: "in the mean of groups", className: "c0" },
      { label: "how much groups differ (standard deviation)", className: "hollow c0" }]) : null,
    note: notDrawn(run.columns),
    table: {
      caption: `${run.unit}: the mean of all groups, and the standard deviation over them.`,
      columns: ["Column", "In common", "Groups differ by"],
      rows: run.columns.map(({ name, common, differs }) => [name, (sizes ? cell : signed)(common, 3), cell(differs, 3)]),
    },
  };
}
