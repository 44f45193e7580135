// The page from top to bottom.

// --- overview ---

function keyFigures() {
  const runs = chosenRuns();
  const done = runs.filter((run) => run.status === "done").length;
  const facts = [
    ["runs", done === runs.length ? `${runs.length}` : `${done} of ${runs.length} done`],
    ["streams", `${new Set(runs.map((run) => run.stream)).size}`],
    ["methods", `${new Set(runs.map((run) => run.method)).size}`],
    ["seeds", `${new Set(runs.map((run) => run.seed)).size}`],
    ["time of all runs", report.total_time || "–"],
    ["most memory", report.most_memory || "–"],
  ];
  return element("dl", { class: "facts" }, ...facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

/** What the paired test over all seeds and tasks says about two methods; nothing if only some are chosen. */
function significance(s, m, n) {
  const pair = report.pairs.find(({ stream, method, other }) =>
    stream === s && (method === m ? other === n : method === n && other === m));
  if (!pair || chosen.seeds.size < seeds.length || tasks.some(({ stream }, i) => stream === s && !chosen.tasks.has(i)))
    return "";
  const p = pair.p < 0.0001 ? "p < 0.0001" : `p = ${format(pair.p, 4)}`;
  return `: ${pair.significant ? "a" : "no"} significant difference (paired t-test over ${count(pair.seeds, "seed")}, ${p})`;
}

/** In words: which method is best on a stream, how sure that is, and what it forgot. */
function sentence(s) {
  const { name, unit } = report.streams[s];
  const digits = digitsOf(s);
  const [best, second] = ranked(chosenMethods().map((m) => ({ m, ...performanceOf(s, m) })), signOf(s));
  if (!best) return null;
  const parts = [element("strong", {}, name), ": ", element("strong", {}, labelOf(best.m))];
  const seedsOf = count(best.final.n, "seed");
  parts.push(` ${second ? "is best" : "ends"} with ${withError(best.final, digits)} (${unit}, ${seedsOf}).`);
  const paper = paperOf(s, best.m);
  if (known(paper)) parts.push(` The paper has ${format(paper, digits)}.`);
  if (second) {
    const difference = significance(s, best.m, second.m);
    parts.push(` Next is ${labelOf(second.m)} with ${withError(second.final, digits)}${difference}.`);
  }
  if (!known(best.forward.mean) || !known(best.final.mean)) return element("li", {}, ...parts);
  const lost = signOf(s) * (best.forward.mean - best.final.mean);
  const much = format(Math.abs(lost), digits);
  const points = report.streams[s].metric === "accuracy" ? " points" : "";
  const change = Number(much) === 0 ? "forgotten nothing" : `${lost > 0 ? "lost" : "gained"} ${much}${points}`;
  parts.push(` Since its tasks were learned, ${labelOf(best.m)} has ${change} on average.`);
  return element("li", {}, ...parts);
}

function overview() {
  const place = element("div");
  const node = section("overview", "Overview", place);
  lazily(place, () => signatureOf("overview", node), () => {
    const sentences = chosenStreams().map(sentence).filter(known);
    const empty = report.runs.length ? "No run with scores is chosen." : "There are no runs yet.";
    const note = noteOnRuns();
    place.replaceChildren(keyFigures(),
      sentences.length ? element("ul", { class: "sentences" }, ...sentences) : element("p", {}, empty),
      ...(note ? [element("p", { class: "note" }, note)] : []));
  });
  return node;
}

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
frame(report, [
  overview(),
  ...(report.tables.length ? [section("tables", "Tables", ...report.tables.map(reportTable))] : []),
  ...(report.runs.length ? [section("figures", "Figures", ...figures)] : []),
  ...(report.explorers.length ? [section("explorer", "Component explorer", explorerSection())] : []),
  ...(report.runs.length ? [section("runs", "Runs", runsTable())] : []),
], filters.node, () => {
  readChoice();
  filters.update();
});
