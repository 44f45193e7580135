// Tables: sortable, copied as CSV, in a box of their own that scrolls if need be.

const ROWS_AT_FIRST = 15;
const ROWS_SHOWN = 1000;
const hints = new Map(); // what a cell's text stands for, in words

/** @typedef {string | CellData} Cell: with a value, if it is sorted and copied by one that reads otherwise */

/** @param {Cell} cell */
const textOf = (cell) => (typeof cell === "string" ? cell : cell.text);

/** What a cell is sorted by: its first number if it begins with one, else its text. */
function sortKey(cell) {
  if (typeof cell !== "string") return cell.value ?? null;
  const text = cell.trim().replace("−", "-").replace(/(\d),(?=\d{3})/g, "$1");
  const match = /^[+-]?\d+(\.\d+)?(?=$|[\s%±])/.exec(text);
  if (match) return Number(match[0]);
  return text === "" || text === "–" || text === "-" ? null : text;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true });
}

function csv(columns, rows) {
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  // A name that a spreadsheet would take for a formula, and run, is a text with an apostrophe before it.
  const text = (cell) => (/^[=@\t\r]|^[+-](?!\d)/.test(cell) ? `'${cell}` : cell);
  const plain = (cell) =>
    typeof cell === "string" ? text(cell.replace(/^−(?=\d)/, "-").replace(/^–$/, "")) : `${cell.value ?? ""}`;
  return [columns, ...rows.map((row) => row.map(plain))]
    .map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

/**
 * `isBest(row, column)`: set in bold. `isShown(row)`: asked at every update. `details(row)`: an element for
 * a last column. Rows are counted as given, however they are sorted.
 * @param {{ name: string, caption: string, columns: string[], rows: Cell[][], details?: (row: number) => Element,
 *   isBest?: (row: number, column: number) => boolean, isShown?: (row: number) => boolean }} table
 */
function sortableTable({ name, caption, columns, rows, isBest, isShown = () => true, details }) {
  const keys = rows.map((row) => row.map(sortKey));
  const numeric = columns.map((_, c) => rows.length > 0 && keys.every((row) => typeof row[c] !== "string"));
  const body = element("tbody");
  const left = element("p", { class: "muted" });
  const lines = [];
  let sorted = { column: null, direction: 1 };
  let limit = ROWS_AT_FIRST;
  const more = element("button", { type: "button", onclick: () => { limit = ROWS_SHOWN; update(); } });

  function line(r) {
    lines[r] ??= element("tr", {}, ...rows[r].map((cell, c) => {
      const text = textOf(cell);
      const look = numeric[c] ? "number" : text.length <= 24 ? "short" : "long";
      return element(c === 0 ? "th" : "td", { scope: c === 0 ? "row" : null, class: look, title: hints.get(text) },
        isBest?.(r, c) ? element("strong", {}, text) : text);
    }), details ? element("td", { class: "details" }, details(r)) : null);
    return lines[r];
  }

  /** Empty cells come last, whichever the direction. */
  function order() {
    const { column, direction } = sorted;
    const visible = [...rows.keys()].filter(isShown);
    if (column === null) return visible;
    return visible.sort((p, q) => {
      const [a, b] = [keys[p][column], keys[q][column]];
      if (a === null || b === null) return Number(a === null) - Number(b === null);
      return direction * compare(a, b);
    });
  }

  function update() {
    const visible = order();
    body.replaceChildren(...visible.slice(0, limit).map(line));
    more.hidden = limit === ROWS_SHOWN || visible.length <= limit;
    more.textContent = `Show all ${visible.length} rows`;
    left.hidden = visible.length > 0 && visible.length <= ROWS_SHOWN;
    left.textContent = visible.length
      ? `The first ${ROWS_SHOWN} of ${visible.length} rows are shown; the copy has all.`
      : "No row is about what is chosen.";
    heads.forEach((head, c) => {
      const now = c !== sorted.column ? "none" : sorted.direction > 0 ? "ascending" : "descending";
      head.setAttribute("aria-sort", now);
    });
  }

  /** Upwards, downwards, and back to the given order. */
  function sortBy(column) {
    if (sorted.column !== column) sorted = { column, direction: 1 };
    else if (sorted.direction > 0) sorted.direction = -1;
    else sorted = { column: null, direction: 1 };
    update();
  }

  const heads = columns.map((column, c) =>
    element("th", { scope: "col", class: numeric[c] ? "number" : null },
      element("button", { type: "button", class: "sort", onclick: () => sortBy(c) }, column)));
  const node = element("div", { class: "table" },
    element("div", { class: "scroll", role: "region", "aria-label": name, tabindex: 0 },
      element("table", {}, element("caption", {}, caption),
        element("thead", {}, element("tr", {}, ...heads, details ? element("th", { scope: "col" }, "Details") : null)),
        body)),
    left,
    more,
    copyButton("Copy as CSV", () => csv(columns, order().map((r) => rows[r]))));
  update();
  addEventListener("beforeprint", () => { limit = ROWS_SHOWN; update(); }); // on paper, nothing can be opened
  return { node, update };
}

/** Without columns in which there is nothing. */
function withoutEmpty({ caption, columns, rows }) {
  const kept = [...columns.keys()].filter((c) => rows.some((row) => !["", "–"].includes(textOf(row[c]))));
  return { caption, columns: kept.map((c) => columns[c]), rows: rows.map((row) => kept.map((c) => row[c])) };
}

/** "The numbers" below a figure. The table is made when it is opened. */
function numbersBelow(name) {
  const node = element("details", { class: "numbers" }, element("summary", {}, "The numbers"));
  let table = null;
  const fillIn = () => {
    if (!node.open || !table) return;
    node.querySelector(".table")?.remove();
    node.append(sortableTable({ name: `${name}: the numbers`, ...withoutEmpty(table) }).node);
  };
  node.addEventListener("toggle", fillIn);
  return {
    node,
    update(next) {
      table = next;
      node.hidden = !next;
      fillIn();
    },
  };
}
