// Sliders for components, and scores that are known on a grid of their positions.

/**
 * The weights of one depth when component c is at intensity a and the others share the rest as in `before`:
 * equally among those that the task may use, if they had nothing.
 * @type {(explorer: ExplorerData, task: ExplorerTaskData, before: number[], c: number, a: number) => number[]}
 */
const mixed = ({ shared }, { usable }, before, c, a) => {
  if (!shared) return before.map((weight, o) => (o === c ? a * weight : weight));
  const rest = before.reduce((sum, weight, o) => (o === c ? sum : sum + weight), 0);
  const equal = (o) => (o < usable ? 1 / Math.max(usable - 1, 1) : 0);
  return before.map((weight, o) => (o === c ? a : (1 - a) * (rest > 0 ? weight / rest : equal(o))));
};

const columnHeads = (names) =>
  element("thead", {}, element("tr", {}, element("td"), ...names.map((name) => element("th", { scope: "col" }, name))));

/** The matrix of sliders. `moved(d, c, a)` is called while one moves. @param {ExplorerData} explorer */
function sliders(explorer, enabled, moved) {
  const { intensities, depth, components, shared } = explorer;
  const cells = range(components).map((c) => range(depth).map((d) => {
    const value = element("output");
    const slider = element("input", {
      type: "range", min: intensities[0], max: intensities.at(-1), step: 0.01, disabled: !enabled(d, c),
      "aria-label": `component ${c} at depth ${d + 1}`, oninput: () => moved(d, c, slider.valueAsNumber),
    });
    const set = (a) => {
      slider.value = a;
      value.textContent = `${shared ? "" : "× "}${format(a, 2)}`;
    };
    return { node: element("td", {}, slider, value), set };
  }));
  const node = element("div", { class: "scroll", role: "region", "aria-label": "Sliders", tabindex: 0 },
    element("table", { class: "sliders" },
      columnHeads(range(depth).map((d) => `depth ${d + 1}`)),
      element("tbody", {}, ...cells.map((row, c) => element("tr", {},
        element("th", { scope: "row" }, `component ${c}`), ...row.map((cell) => cell.node))))));
  return { node, set: (d, c, a) => cells[c][d].set(a) };
}

// --- scores known on a grid ---

/** The score at intensity a, between the known ones on a straight line. */
function interpolated(points, a) {
  const next = points.findIndex(([x]) => x >= a);
  if (next < 0) return points.at(-1)?.[1] ?? null;
  if (next === 0) return points[0][1];
  const [[x0, y0], [x1, y1]] = [points[next - 1], points[next]];
  return y0 + ((a - x0) / (x1 - x0 || 1)) * (y1 - y0);
}

/** @type {(explorer: ExplorerData, task: ExplorerTaskData, s: number) => Element} */
function gridExplorer(explorer, task, s) {
  const learned = task.weights;
  const digits = digitsOf(s);
  const score = element("output", { class: "score", "aria-live": "polite" });
  const what = element("p", { class: "muted" });
  const bars = element("div", { class: "panel" });
  const curve = element("div", { class: "panel" });
  const numbers = numbersBelow("Component explorer");
  let now = null; // {d, c, a}
  const home = (d, c) => (explorer.shared ? learned[d][c] : 1); // where a slider stands as learned
  const reset = () => learned.forEach((weights, d) => weights.forEach((_, c) => matrix.set(d, c, home(d, c))));

  /** What is known of one slider, with the learned point among the grid's. */
  function pointsOf(d, c) {
    const grid = explorer.intensities.map((a, i) => ({ a, y: task.scores?.[d]?.[c]?.[i] }));
    return [...grid.filter(({ a }) => Math.abs(a - home(d, c)) > 0.0005), { a: home(d, c), y: task.score }]
      .flatMap(({ a, y }) => (known(y) ? [[a, y]] : [])).sort((p, q) => p[0] - q[0]);
  }

  function drawWeights(d, weights) {
    const width = Math.min(columnsFor(bars, 1, 200), 420);
    const left = textWidth(`component ${weights.length}`) + 12;
    const chart = new Chart(`Weights at depth ${d + 1}: ${weights.map((w) => format(w, 2)).join(", ")}.`,
      { width, height: 20 * weights.length + 8, left, right: 48, top: 4, bottom: 4 });
    const domain = extent([...learned.flat(), ...weights, explorer.shared ? 1 : 0], { zero: true, room: 0 });
    chart.x = scale(domain, [chart.left, chart.right]);
    weights.forEach((weight, c) => {
      const y = chart.top + 20 * c;
      chart.text(chart.left - 8, y + 12, `component ${c}`, "tick end");
      chart.bar(chart.x(0), chart.x(weight), y + 2, 12, "c0");
      chart.text(chart.right + 6, y + 12, format(weight, 2), "tick");
      const text = `component ${c}: ${format(weight, 3)}\nlearned: ${format(learned[d][c], 3)}`;
      chart.target(chart.x(weight), y + 8, text);
    });
    bars.replaceChildren(element("p", { class: "panel-title" }, `Weights at depth ${d + 1}`), chart.node);
  }

  function drawScores(d, c, a, value) {
    const { unit } = report.streams[s];
    const points = pointsOf(d, c);
    const width = columnsFor(curve, 1, 200);
    const intensity = `intensity of component ${c} at depth ${d + 1}`;
    const chart = new Chart(
      `${task.name}: score by ${intensity}; now ${format(value, digits)} at ${format(a, 2)}.`,
      { width, height: 220, left: 46, right: 14, top: 22, bottom: 40 });
    chart.xAxis([explorer.intensities[0], explorer.intensities.at(-1)], intensity);
    chart.yAxis(extent([...points.map(([, y]) => y), task.score]), unit);
    chart.line(points.map(([x, y]) => [chart.x(x), chart.y(y)]), "c0");
    for (const [x, y] of points) chart.target(chart.x(x), chart.y(y), `intensity ${format(x, 2)}: ${format(y, digits)}`);
    if (known(task.score)) chart.mark(chart.x(home(d, c)), chart.y(task.score), DIAMOND, "paper");
    if (known(value)) chart.mark(chart.x(a), chart.y(value), CIRCLE, "now", 1.5);
    curve.replaceChildren(element("p", { class: "panel-title" }, "Score"), chart.node,
      legend([
        { label: "now", className: "now", mark: CIRCLE },
        { label: "as learned", className: "paper", mark: DIAMOND },
      ]));
    numbers.update({
      caption: `${task.name}: score by ${intensity}.`,
      columns: ["Intensity", unit], rows: points.map(([x, y]) => [format(x, 3), format(y, digits)]),
    });
  }

  const update = coalesced(() => {
    const { d, c, a } = now;
    const value = interpolated(pointsOf(d, c), a);
    const change = known(value) && known(task.score) ? value - task.score : null;
    score.textContent = format(value, digits);
    const visible = known(change) && Math.abs(change) >= 0.5 * 10 ** -digits;
    what.textContent = `${unitOf(s)}; as learned ${format(task.score, digits)}` +
      (visible ? ` (${change > 0 ? "+" : ""}${format(change, digits)})` : "");
    const apart = Math.abs(a - home(d, c)) > 1e-9;
    drawWeights(d, apart ? mixed(explorer, task, learned[d], c, a) : learned[d]);
    drawScores(d, c, a, value);
  });
  const matrix = sliders(explorer, (d, c) => task.scores?.[d]?.[c]?.some(known), (d, c, a) => {
    reset();
    matrix.set(d, c, a);
    now = { d, c, a };
    update();
  });
  const learn = () => {
    now = { ...(now ?? { d: 0, c: 0 }) };
    now.a = home(now.d, now.c);
    reset();
    update();
  };
  learn();
  return element("div", {},
    element("p", {}, "One slider at a time: the others go back to what was learned."),
    matrix.node, element("button", { type: "button", onclick: learn }, "As learned"),
    element("div", { class: "result" }, element("div", {}, score, what, bars), curve), numbers.node);
}
