// Elements, numbers as text, and a little statistics.

const SVG = "http://www.w3.org/2000/svg";

/** Text only ever enters as text nodes and attributes: names may contain anything. */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const element = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

const shape = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const range = (n) => Array.from({ length: n }, (_, i) => i);

/** @type {<T>(value: T) => value is NonNullable<T>} */
const known = (value) => value !== null && value !== undefined;

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

/** JSON, compressed, in base64: as the page was given it. */
async function unpacked(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** An element of page.html. */
const part = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));

/** @typedef {{ mean: number | null, error: number | null, n: number }} Mean over `n` values */

function mean(values) {
  const there = values.filter(known);
  return there.length ? there.reduce((a, b) => a + b, 0) / there.length : null;
}

/**
 * The mean and its standard error (null for a single value). A value that is not a number leaves neither.
 * @param {(number | null | undefined)[]} values
 * @returns {Mean}
 */
function meanAndError(values) {
  const there = values.filter(known);
  const n = there.length;
  if (!n || there.some(Number.isNaN)) return { mean: null, error: null, n };
  const middle = there.reduce((a, b) => a + b, 0) / n;
  const squares = there.reduce((sum, v) => sum + (v - middle) ** 2, 0);
  return { mean: middle, error: n > 1 ? Math.sqrt(squares / (n - 1) / n) : null, n };
}

/** "–" where there is no number; a true minus sign. */
function format(value, digits = 1) {
  if (!known(value)) return "–";
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

const withError = ({ mean: middle, error }, digits) =>
  known(error) ? `${format(middle, digits)} ± ${format(error, digits)}` : format(middle, digits);

const count = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;

/** Work that is wanted often is done once, before the next picture on the screen. */
function coalesced(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without permission, or in a page that is not from a secure place.
    const area = element("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function copyButton(label, text) {
  const button = element("button", { type: "button", class: "small" }, label);
  button.addEventListener("click", async () => {
    await copy(text());
    button.textContent = "Copied";
    button.focus();
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}

const commandLine = (command) =>
  element("div", { class: "command" }, element("code", {}, command), copyButton("Copy", () => command));

/** Draws when the element comes near the screen, and again after it was marked as out of date. */
const drawings = new Map();
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const drawing = drawings.get(target);
      drawing.near = isIntersecting;
      bringUpToDate(drawing);
    }
  },
  { rootMargin: "400px" },
);

function bringUpToDate(drawing) {
  if (!drawing.near || !drawing.node.clientWidth) return;
  const now = drawing.signature();
  if (now === drawing.drawn) return;
  drawing.drawn = now;
  drawing.draw();
}

/** `signature` tells whether what is drawn is still right. */
function lazily(node, signature, draw) {
  drawings.set(node, { node, near: false, drawn: null, signature, draw });
  watcher.observe(node);
}

function redraw({ everything = false } = {}) {
  for (const drawing of drawings.values()) {
    drawing.near ||= everything;
    bringUpToDate(drawing);
  }
}
