// Charts as SVG: scales, axes, bars, error bars, lines, marks and cells. Values are read off by "targets":
// places in a chart with a text, found by pointer, finger or arrow keys. So marks need no listeners.

const COLOURS = 7; // classes c0 to c6 of the style sheet, which has them for light and dark
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2", "1 4"];
const MARKS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", // circle
  "M-3.6 -3.6h7.2v7.2h-7.2z", // square
  "M0 -4.8L4.6 3.6H-4.6z", // triangle
  "M0 -5L5 0L0 5L-5 0z", // diamond
  "M0 4.8L4.6 -3.6H-4.6z", // triangle, pointing down
  "M-1.5 -5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z", // plus
  "M-4.6 -3L-3 -4.6L0 -1.6L3 -4.6L4.6 -3L1.6 0L4.6 3L3 4.6L0 1.6L-3 4.6L-4.6 3L-1.6 0z", // cross
];
const [CIRCLE, DIAMOND, CROSS] = [0, 3, 6];
const SWITCH = 0.62; // in hotter cells the other text colour has the better contrast, above 4.5 everywhere

/** How each method looks. Few methods differ in everything; many share a colour if their algorithm is the same. */
function methodStyles(methods) {
  const algorithms = [...new Set(methods.map((method) => method.algorithm))];
  const seen = range(COLOURS).map(() => 0);
  return methods.map((method, i) => {
    const few = methods.length <= COLOURS;
    const colour = (few || algorithms.length < 2 ? i : algorithms.indexOf(method.algorithm)) % COLOURS;
    const other = few ? i : seen[colour]++;
    return { colour, mark: other % MARKS.length, dash: DASHES[other % DASHES.length] };
  });
}

/** A colour between the first and the last task's, right for light and dark. */
function orderColour(t) {
  const [from, to, share] = t < 0.5 ? ["early", "middle", 2 * t] : ["middle", "late", 2 * t - 1];
  return `color-mix(in oklab, var(--${from}), var(--${to}) ${(100 * share).toFixed(1)}%)`;
}

/** t in [-1, 1]: below zero has a colour of its own. */
const heatColour = (t) =>
  `color-mix(in oklab, var(--cold), var(--${t < 0 ? "below" : "hot"}) ${(100 * Math.min(Math.abs(t), 1)).toFixed(1)}%)`;

/** @type {(from: [number, number], to: [number, number]) => (value: number) => number} */
const scale = ([a, b], [p, q]) => (value) => p + ((value - a) / (b - a || 1)) * (q - p);

/** The least and the greatest value, with some room; `zero`: from zero. @returns {[number, number]} */
function extent(values, { zero = false, room = 0.06 } = {}) {
  let [low, high] = zero ? [0, 0] : [Infinity, -Infinity];
  for (const value of values) {
    if (!known(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  const more = (high - low || Math.abs(high) || 1) * room;
  return [zero && low === 0 ? 0 : low - more, zero && high === 0 ? 0 : high + more];
}

/** Round numbers, about `n` of them, with as many digits as they need; `least`: from one to the next. */
function ticks([low, high], n, least = 0) {
  const rough = (high - low) / Math.max(n, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(least, power * ([1, 2, 5].find((each) => each * power >= rough * 0.999) ?? 10));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  return range(Math.max(0, Math.floor(high / step + 1e-9) - first + 1))
    .map((i) => ({ value: (first + i) * step, text: format((first + i) * step, digits) }));
}

const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
const textWidths = new Map();

function textWidth(text) {
  if (!textWidths.has(text)) {
    pen.font = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
    textWidths.set(text, pen.measureText(text).width);
  }
  return textWidths.get(text);
}

/** The text, cut to fit into `width` pixels. */
function fit(text, width) {
  if (textWidth(text) <= width) return text;
  let cut = [...text];
  while (cut.length && textWidth(`${cut.join("")}…`) > width) cut = cut.slice(0, -1);
  return `${cut.join("")}…`;
}

const widest = (texts) => texts.reduce((most, text) => Math.max(most, textWidth(text)), 0);

/** @typedef {{ x: number, y: number, text: string, box: Record<"x" | "y" | "width" | "height", number> }} Target */

class Chart {
  /** `label` says what is seen, for those who do not see it. Margins: `left`, `right`, `top`, `bottom`. */
  constructor(label, { width, height, left = 8, right = 8, top = 8, bottom = 8 }) {
    this.width = width;
    this.left = left;
    this.right = width - right;
    this.top = top;
    this.bottom = height - bottom;
    this.x = this.y = scale([0, 1], [0, 1]); // the axes set them
    /** @type {Target[]} */
    this.targets = [];
    this.ring = shape("rect", { class: "ring", rx: 3, visibility: "hidden" });
    this.node = shape("svg", {
      role: "img", "aria-label": label, "aria-describedby": "arrows", tabindex: 0,
      width, height, viewBox: `0 0 ${width} ${height}`,
    }, this.ring);
    charts.set(this.node, this);
  }

  add(tag, attributes, ...children) {
    const node = shape(tag, attributes, ...children);
    this.ring.before(node);
    return node;
  }

  text(x, y, text, className = "", width = Infinity) {
    return this.add("text", { x, y, class: className }, fit(text, width));
  }

  /** The name of a row, above it, in a strip of 20 pixels from `y` that no line of the chart goes through. */
  nameAbove(y, name) {
    this.add("rect", { class: "clear", x: 0, y, width: this.width, height: 20 });
    this.text(this.left, y + 15, name, "name", this.width - this.left);
  }

  xAxis(domain, label, { least = 0, marks = ticks(domain, (this.right - this.left) / 70, least) } = {}) {
    this.x = scale(domain, [this.left, this.right]);
    for (const { value, text } of marks) {
      const x = this.x(value);
      this.add("line", { class: "grid", x1: x, x2: x, y1: this.top, y2: this.bottom });
      this.text(x, this.bottom + 15, text, "tick middle");
    }
    if (label) this.text((this.left + this.right) / 2, this.bottom + 32, label, "axis middle", this.width);
  }

  yAxis(domain, label, { marks = ticks(domain, (this.bottom - this.top) / 36) } = {}) {
    this.y = scale(domain, [this.bottom, this.top]);
    for (const { value, text } of marks) {
      const y = this.y(value);
      this.add("line", { class: "grid", x1: this.left, x2: this.right, y1: y, y2: y });
      this.text(this.left - 6, y + 4, text, "tick end");
    }
    if (label) this.text(0, 11, label, "axis", this.width);
  }

  /** A bar from `from` to `to` in pixels. */
  bar(from, to, y, thickness, className) {
    const [x, width] = [Math.min(from, to), Math.abs(to - from)];
    this.add("rect", { x, y, width, height: thickness, class: `bar ${className}` });
  }

  /**
   * The standard error of a mean: along x, at the height `y`, or along y, at `x`.
   * @param {Mean} value
   * @param {{ x?: number, y?: number }} at
   */
  errorBar({ mean: middle, error }, { x, y }) {
    if (!known(middle) || !known(error)) return;
    const [low, high] = [middle - error, middle + error].map(known(y) ? this.x : this.y);
    const d = known(y)
      ? `M${low} ${y}H${high}M${low} ${y - 3}v6M${high} ${y - 3}v6`
      : `M${x} ${low}V${high}m-3 0h6M${x} ${low}m-3 0h6`;
    this.add("path", { class: "whisker", d });
  }

  mark(x, y, kind, className, size = 1) {
    const transform = `translate(${x} ${y}) scale(${size})`;
    return this.add("path", { class: `mark ${className}`, d: MARKS[kind], transform });
  }

  /** A line through points in pixels; a gap where there is none (null). */
  line(points, className, { dash = "", colour = "" } = {}) {
    let d = "";
    points.forEach((point, i) => {
      if (point) d += `${i && points[i - 1] ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    });
    const node = this.add("path", { class: `line ${className}`, d, "stroke-dasharray": dash || null });
    if (colour) node.style.setProperty("--c", colour);
  }

  /** A cell of a heat map: `t` in [-1, 1] is how hot it is, null is nothing. */
  cell(x, y, width, height, t, tip, text = "") {
    const gap = Math.min(width, height) > 6 ? 1 : 0;
    const box = { x, y, width: width - gap, height: height - gap };
    const node = this.add("rect", { ...box, class: known(t) ? "cell" : "cell empty" });
    if (known(t)) node.style.fill = heatColour(t);
    const [middle, centre] = [x + width / 2, y + height / 2];
    if (text) this.text(middle, centre + 4, text, `tick middle ${Math.abs(t) > SWITCH ? "on-hot" : "on-cold"}`);
    if (tip) this.target(middle, centre, tip, box);
  }

  target(x, y, text, box = { x: x - 6, y: y - 6, width: 12, height: 12 }) {
    this.targets.push({ x, y, text, box });
  }

  /** The target in whose box a point is, or else the nearest that is near. */
  targetAt(x, y) {
    let [best, least] = [/** @type {Target | null} */ (null), 24 ** 2];
    for (const target of this.targets) {
      const { box } = target;
      const inside = x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;
      const distance = ((target.x - x) ** 2 + (target.y - y) ** 2) / (inside ? 1e6 : 1);
      if (distance < least) [best, least] = [target, distance];
    }
    return best;
  }

  /** The nearest target in a direction; straight ahead counts as nearer. */
  next(from, dx, dy) {
    let [best, least] = [/** @type {Target | null} */ (null), Infinity];
    for (const target of this.targets) {
      const [x, y] = [target.x - from.x, target.y - from.y];
      const ahead = x * dx + y * dy;
      const cost = ahead + 4 * Math.abs(x * dy + y * dx);
      if (ahead > 0.5 && cost < least) [best, least] = [target, cost];
    }
    return best;
  }
}

// --- reading values off ---

/** @type {WeakMap<Element, Chart>} */
const charts = new WeakMap();
const tip = part("#tip");
let shown = null; // {chart, target}

function show(chart, target) {
  if (shown?.target === target) return;
  hideTip();
  if (!target) return;
  shown = { chart, target };
  for (const [name, value] of Object.entries(target.box)) chart.ring.setAttribute(name, value);
  chart.ring.setAttribute("visibility", "visible");
  tip.textContent = target.text;
  tip.hidden = false;
  const frame = chart.node.getBoundingClientRect();
  const [x, y] = [frame.left + target.x, frame.top + target.box.y];
  const left = Math.max(4, Math.min(x - tip.offsetWidth / 2, document.documentElement.clientWidth - tip.offsetWidth - 4));
  const above = y - tip.offsetHeight - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : y + target.box.height + 8}px`;
}

function hideTip() {
  shown?.chart.ring.setAttribute("visibility", "hidden");
  shown = null;
  tip.hidden = true;
}

const chartOf = (event) => charts.get(/** @type {Element} */ (event.target).closest?.("svg") ?? tip);

function point(event) {
  const chart = chartOf(event);
  if (!chart) {
    if (event.type === "pointerdown" || !document.activeElement?.matches("svg")) hideTip();
    return;
  }
  const frame = chart.node.getBoundingClientRect();
  show(chart, chart.targetAt(event.clientX - frame.left, event.clientY - frame.top));
}

document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);
document.addEventListener("scroll", hideTip, { passive: true, capture: true });
document.addEventListener("focusin", (event) => {
  const chart = chartOf(event);
  if (chart?.node.matches(":focus-visible")) show(chart, chart.targets[0]);
});
document.addEventListener("focusout", hideTip);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
  const chart = chartOf(event);
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!chart || !step) return;
  event.preventDefault();
  const from = shown?.chart === chart ? shown.target : null;
  const next = from ? chart.next(from, ...step) : chart.targets[0];
  if (next) show(chart, next);
});

// --- around charts ---

/** A legend; each item: {label, hint, colour class or CSS colour, mark, dash, line}. */
function legend(items) {
  return element("ul", { class: "legend" }, ...items.map(({ label, hint, className = "", colour, mark, dash, line }) => {
    const swatch = shape("svg", { width: 26, height: 14, "aria-hidden": "true", class: className });
    const add = (tag, attributes) => swatch.append(shape(tag, attributes));
    if (line) add("path", { class: "line", d: "M1 7H25", "stroke-dasharray": dash || null });
    if (known(mark)) add("path", { class: `mark ${className}`, d: MARKS[mark], transform: "translate(13 7)" });
    if (!line && !known(mark)) add("rect", { class: `bar ${className}`, x: 2, y: 2, width: 22, height: 10 });
    if (colour) swatch.style.setProperty("--c", colour);
    return element("li", { title: hint }, swatch, ` ${label}`);
  }));
}

/** Makes room for small multiples, and returns the width of one. */
function columnsFor(parent, number, least) {
  const gap = 28;
  const columns = Math.max(1, Math.min(number, Math.floor((parent.clientWidth + gap) / (least + gap))));
  parent.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  return Math.floor((parent.clientWidth - gap * (columns - 1)) / columns);
}

const panel = (title, ...children) =>
  element("div", { class: "panel" }, title ? element("p", { class: "panel-title" }, title) : null, ...children);
