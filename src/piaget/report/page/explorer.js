// The component explorer: a slider for every component at every depth of one run.

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

// --- pictures, computed ---

/** The network of an explorer of pictures, as `NetworkData` describes it. Pixels are padded to a multiple of 4. */
class Network {
  /** @param {NetworkData} network */
  constructor({ width, side, numbers }, components) {
    const all = new Float32Array(bytesOf(numbers).buffer);
    let from = 0;
    const take = (n) => all.subarray(from, (from += n));
    this.width = width;
    this.side = side;
    this.pixels = side[0] * side[1];
    this.padded = 4 * Math.ceil(this.pixels / 4);
    const inputs = take(2 * this.pixels);
    const [encoder, bias] = [take(2 * width), take(width)];
    this.weights = range(components).map(() => take(width * width));
    this.biases = range(components).map(() => take(width));
    this.decoder = take(width);
    this.offset = take(1);
    this.encoded = new Float32Array(this.padded * width);
    for (let p = 0; p < this.pixels; p++)
      for (let o = 0; o < width; o++)
        this.encoded[p * width + o] = inputs[2 * p] * encoder[o] + inputs[2 * p + 1] * encoder[width + o] + bias[o];
  }

  /** relu(W_c h + b_c) of all pixels. Four at a time, so that a weight is fetched once for four. */
  component(c, h) {
    const { width: n, padded } = this;
    const [weight, bias, out] = [this.weights[c], this.biases[c], new Float32Array(padded * n)];
    for (let p = 0; p < padded * n; p += 4 * n)
      for (let o = 0; o < n; o++) {
        let s0 = bias[o], s1 = s0, s2 = s0, s3 = s0;
        for (let i = 0, w = o * n, q = p; i < n; i++, w++, q++) {
          const v = weight[w];
          s0 += v * h[q];
          s1 += v * h[q + n];
          s2 += v * h[q + 2 * n];
          s3 += v * h[q + 3 * n];
        }
        const q = p + o;
        out[q] = s0 > 0 ? s0 : 0;
        out[q + n] = s1 > 0 ? s1 : 0;
        out[q + 2 * n] = s2 > 0 ? s2 : 0;
        out[q + 3 * n] = s3 > 0 ? s3 : 0;
      }
    return out;
  }

  ink(h) {
    const ink = new Float32Array(this.pixels);
    for (let p = 0; p < this.pixels; p++) {
      let sum = this.offset[0];
      for (let o = 0; o < this.width; o++) sum += h[p * this.width + o] * this.decoder[o];
      ink[p] = 1 / (1 + Math.exp(-sum));
    }
    return ink;
  }
}

/** Draws with changing weights. What lies before the first changed depth is kept from the last time. */
class Painter {
  constructor(network) {
    this.network = network;
    this.layers = []; // {h: before the depth, outputs: of its components, weights, after}
  }

  ink(weights) {
    let h = this.network.encoded;
    weights.forEach((mix, d) => {
      if (this.layers[d]?.h !== h) this.layers[d] = { h, outputs: [] };
      const layer = this.layers[d];
      if (!layer.weights?.every((weight, c) => weight === mix[c])) {
        layer.weights = mix.slice();
        layer.after = this.combined(layer, mix);
      }
      h = layer.after;
    });
    return this.network.ink(h);
  }

  combined({ h, outputs }, mix) {
    const sum = new Float32Array(h.length);
    mix.forEach((weight, c) => {
      if (!weight) return;
      const out = (outputs[c] ??= this.network.component(c, h));
      for (let i = 0; i < sum.length; i++) sum[i] += weight * out[i];
    });
    return sum;
  }
}

/** Dark ink on white paper, also on a dark page. */
function paint(canvas, ink, [rows, columns]) {
  [canvas.width, canvas.height] = [columns, rows];
  const image = new ImageData(columns, rows);
  ink.forEach((value, i) => image.data.set([0, 1, 2].map(() => 255 * (1 - value)), 4 * i));
  for (let i = 3; i < image.data.length; i += 4) image.data[i] = 255;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

const picture = (label) => element("canvas", { role: "img", "aria-label": label, width: 1, height: 1 });

/** @type {(explorer: ExplorerData, task: ExplorerTaskData, network: Network) => Element} */
function pixelExplorer(explorer, task, network) {
  const learned = task.weights;
  const painter = new Painter(network);
  const truth = task.truth ? bytesOf(task.truth) : null;
  const asItWas = painter.ink(learned);
  let weights, held; // `held`: what the moving slider found, so that it may come back to where it was
  const rightly = (ink) => {
    const right = ink.reduce((sum, value, i) => sum + Number(value > 0.5 === (truth?.[i] === 1)), 0);
    return `${format((100 * right) / ink.length)} % of pixels right`;
  };
  const canvas = picture(`${task.name}, with the sliders as they are`);
  const score = element("output", { class: "muted" });
  const numbers = numbersBelow("Component explorer");

  const update = coalesced(() => {
    const ink = painter.ink(weights);
    paint(canvas, ink, network.side);
    if (truth) score.textContent = rightly(ink);
    numbers.update({
      caption: `${task.name}: weights as the sliders are, and as learned.`,
      columns: ["Depth", "Component", "Now", "Learned"],
      rows: weights.flatMap((mix, d) => mix.map((weight, c) =>
        [`${d + 1}`, `${c}`, format(weight, 3), format(learned[d][c], 3)])),
    });
  });
  const place = (d) => weights[d].forEach((weight, c) =>
    matrix.set(d, c, explorer.shared ? weight : learned[d][c] ? weight / learned[d][c] : 1));
  const matrix = sliders(explorer, () => true, (d, c, a) => {
    if (held.d !== d || held.c !== c) held = { d, c, before: weights[d] };
    weights = weights.with(d, explorer.shared
      ? mixed(explorer, task, held.before, c, a)
      : weights[d].with(c, a * learned[d][c]));
    place(d);
    update();
  });
  const reset = () => {
    weights = learned;
    held = {};
    range(explorer.depth).forEach(place);
    update();
  };
  reset();
  const titled = (node, title, more) =>
    element("figure", { class: "picture" }, node, element("figcaption", {}, title, more));
  const still = (ink, title, label) => {
    const node = picture(label);
    paint(node, ink, network.side);
    return titled(node, title);
  };
  return element("div", {},
    element("p", {}, explorer.shared
      ? "Weights of a depth sum to 1: when one slider moves, the others of its depth share the rest."
      : "Each slider scales one weight."),
    matrix.node, element("button", { type: "button", onclick: reset }, "As learned"),
    element("div", { class: "pictures" },
      titled(canvas, truth ? "Now: " : "Now", score),
      still(asItWas, truth ? `As learned: ${rightly(asItWas)}` : "As learned", `${task.name}, as learned`),
      truth ? still(truth, "Truth", `${task.name}, the truth`) : null),
    numbers.node);
}

/**
 * One component from intensity 0 to 1 at each depth, for one task: the paper's figure.
 * @type {(explorer: ExplorerData, task: ExplorerTaskData, network: Network, c: number) => Element}
 */
function strip(explorer, task, network, c) {
  const steps = range(8).map((i) => i / 7);
  const learned = task.weights;
  const painter = new Painter(network);
  const jobs = [];
  const cell = (d, a) => {
    const canvas = picture(`${task.name}: component ${c} at depth ${d + 1} at ${format(a, 2)}`);
    jobs.push(() => paint(canvas, painter.ink(learned.with(d, mixed(explorer, task, learned[d], c, a))), network.side));
    return element("td", {}, canvas);
  };
  const rows = range(explorer.depth).map((d) =>
    element("tr", {}, element("th", { scope: "row" }, `depth ${d + 1}`), ...steps.map((a) => cell(d, a))));
  // One picture at a time, so that the page stays responsive; gone from the page, it stops.
  const label = `${task.name}, component ${c}`;
  const node = element("div", { class: "scroll", role: "region", "aria-label": label, tabindex: 0 },
    element("table", { class: "strip" },
      element("caption", {}, task.name),
      columnHeads(steps.map((a) => format(a, 2))),
      element("tbody", {}, ...rows)));
  const work = () => {
    if (!node.isConnected || !jobs.length) return;
    jobs.shift()();
    setTimeout(work);
  };
  setTimeout(work);
  return node;
}

function explorerSection() {
  const which = chooser("explorer-of", "Run");
  const whichTask = chooser("explorer-task", "Task");
  const whichComponent = chooser("explorer-component", "Component");
  const place = element("div", { class: "explorer" });
  const strips = element("div", { class: "strips" });
  const stripBox = element("div", { hidden: true },
    element("h3", {}, "One component, from nothing to everything"),
    element("p", { class: "muted" },
      "The last two tasks, with one component's intensity going from 0 to 1 at one depth. " +
        "At other depths, weights are as learned."),
    whichComponent.node, strips);
  const networks = new Map();
  const node = element("div", {}, element("div", { class: "controls" }, which.node, whichTask.node), place, stripBox);
  let drawn = null; // a change of the component leaves the sliders as they are

  const nameOf = ({ run, network }, i) => [i, `${runLabel(report.runs[run])}${network ? " (pictures)" : ""}`];
  const draw = () => {
    const i = Number(which.update(report.explorers.map(nameOf)));
    const explorer = report.explorers[i];
    const t = Number(whichTask.update(explorer.tasks.map((task, k) => [k, task.name])));
    if (explorer.network && !networks.has(i)) networks.set(i, new Network(explorer.network, explorer.components));
    const network = networks.get(i);
    const task = explorer.tasks[t];
    const now = `${i} ${t} ${node.clientWidth}`;
    if (task && now !== drawn)
      place.replaceChildren(network
        ? pixelExplorer(explorer, task, network)
        : gridExplorer(explorer, task, report.runs[explorer.run].stream));
    drawn = now;
    stripBox.hidden = !network;
    if (!network) return;
    const c = Number(whichComponent.update(range(explorer.components).map((k) => [k, `${k}`])));
    strips.replaceChildren(...explorer.tasks.slice(-2).map((each) => strip(explorer, each, network, c)));
  };
  const chosenHere = () => ["of", "task", "component"].map((key) => options.get(`explorer-${key}`)).join(" ");
  lazily(node, () => `${chosenHere()} ${node.clientWidth}`, draw);
  return node;
}
