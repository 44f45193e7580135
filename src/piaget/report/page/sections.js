// The page from top to bottom.

// --- tables and runs ---

const concerns = (s, m) => (!known(s) || chosen.streams.has(s)) && (!known(m) || chosen.methods.has(m));

function lazyTable(place, id, content) {
  let table = null;
  lazily(place, () => signatureOf(id, place), () => {
    if (table) return table.update();
    table = sortableTable(content);
    place.append(table.node);
  });
  return place;
}

/** @param {TableData} table */
function reportTable({ id, title, caption, columns, rows, best, stream, method }) {
  const bold = new Set(best.map(([r, c]) => `${r} ${c}`));
  const place = element("div", { class: "given", id: `table-${id}` }, element("h3", {}, title));
  return lazyTable(place, "tables", {
    name: title, caption, columns, rows,
    isBest: (r, c) => bold.has(`${r} ${c}`), isShown: (r) => concerns(stream[r], method[r]),
  });
}

/** Links lead to files beside the page only. */
const isRelative = (link) => known(link) && !/^([a-z][a-z\d+.-]*:|[\\/]{2})/i.test(link.trim());

/** @param {RunData} run */
function runDetails(run) {
  const node = element("details", {}, element("summary", { "aria-label": `Details of ${runLabel(run)}` }, "show"));
  node.addEventListener("toggle", () => node.append(
    element("p", { class: "muted" }, run.folder),
    commandLine(run.command),
    element("pre", {}, JSON.stringify(run.configuration, null, 2)),
    isRelative(run.link) ? element("p", {}, element("a", { href: run.link }, "run.json")) : "",
  ), { once: true });
  return node;
}

function runsTable() {
  return lazyTable(element("div"), "runs", {
    name: "Runs", caption: "Every run is one stream, method and seed.",
    columns: ["Stream", "Method", "Seed", "Status", "Time", "Steps", "Memory", "Components"],
    rows: report.runs.map((run) => [
      streamName(run.stream), labelOf(run.method), `${run.seed}`, run.status,
      run.time, run.steps, run.memory, format(run.components, 0),
    ]),
    isShown: (r) => isChosen(report.runs[r]),
    details: (r) => runDetails(report.runs[r]),
  });
}

// --- everything ---

readOptions();
readChoice();
const filters = choosing();
const apart = [variationFigure, confusionFigure]; // in sections of their own
const drawn = figures.filter((node) => !apart.includes(node));
frame(report, [
  overview(),
  ...(report.runs.length ? [section("figures", "Figures", ...drawn)] : []),
  ...(variationFigure ? [section("parts", "Which parts helped", variationFigure)] : []),
  ...(confusionFigure ? [section("inference", "Which task is it?", confusionFigure)] : []),
  ...(report.tables.length ? [section("tables", "Tables", ...report.tables.map(reportTable))] : []),
  ...(report.explorers.length ? [section("explorer", "Component explorer", explorerSection())] : []),
  ...(report.runs.length ? [section("runs", "Runs", runsTable())] : []),
], filters.node, () => {
  readChoice();
  filters.update();
});
