// The page from top to bottom.

const INDEX = []; // sections, for the navigation: [id, title]

function section(id, title, ...children) {
  INDEX.push([id, title]);
  return element("section", { id, "aria-labelledby": `${id}-heading` },
    element("h2", { id: `${id}-heading`, tabindex: -1 }, title), ...children);
}

function header() {
  const { title, date, version, command, notes } = report;
  return [
    element("h1", {}, title),
    element("p", { class: "muted" }, `${date} · piaget ${version}`),
    commandLine(command),
    notes.length
      ? element("aside", { class: "notes", "aria-label": "Notes" },
        element("ul", {}, ...notes.map((note) => element("li", {}, note))))
      : null,
  ].filter(known);
}

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

const THEMES = { light: "dark", dark: "light" };

function themeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const wished = () => options.get("theme") ?? "";
  const now = () => (THEMES[wished()] ? wished() : system.matches ? "dark" : "light");
  const switchOver = () => goTo({ theme: THEMES[now()] });
  const button = element("button", { type: "button", class: "small theme", onclick: switchOver });
  const update = () => {
    if (THEMES[wished()]) document.documentElement.dataset.theme = wished();
    else delete document.documentElement.dataset.theme;
    button.textContent = now() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} colours`);
  };
  system.addEventListener("change", update);
  return { button, update };
}

function navigation(button) {
  const link = ([id, title]) => element("a", { href: `#at=${id}` }, title);
  document.addEventListener("click", (event) => {
    const anchor = /** @type {Element} */ (event.target).closest?.('a[href^="#at="]');
    if (!anchor) return;
    event.preventDefault();
    const at = String(anchor.getAttribute("href")).slice(4);
    if (options.get("at") === at) showSection(at);
    else goTo({ at });
  });
  return [element("ul", {}, ...INDEX.map((each) => element("li", {}, link(each)))), button];
}

function showSection(id) {
  const heading = INDEX.some(([each]) => each === id) ? document.getElementById(`${id}-heading`) : null;
  if (!heading) return;
  heading.focus({ preventScroll: true });
  // What is above may only be drawn now, and push it down: so once more, for a moment.
  for (const wait of [0, 50, 100, 200, 400]) setTimeout(() => heading.scrollIntoView(), wait);
}

function start() {
  readAddress();
  const { tables, explorers, runs } = report;
  part("#top").append(...header());
  part("#main").append(
    overview(),
    ...(tables.length ? [section("tables", "Tables", ...tables.map(reportTable))] : []),
    ...(runs.length ? [section("figures", "Figures", ...figures)] : []),
    ...(explorers.length ? [section("explorer", "Component explorer", explorerSection())] : []),
    ...(runs.length ? [section("runs", "Runs", runsTable())] : []),
  );
  const theme = themeButton();
  const filters = choosing();
  part("nav").append(...navigation(theme.button));
  part(".toolbar section").append(filters.node);
  part("footer").append(
    element("p", { class: "muted" }, `Made by piaget ${report.version}. This page needs no network.`));

  let at = null;
  const follow = () => {
    readAddress();
    theme.update();
    filters.update();
    redraw();
    if (at !== options.get("at")) showSection(options.get("at"));
    at = options.get("at");
  };
  addEventListener("hashchange", follow);
  new ResizeObserver(coalesced(() => redraw())).observe(part("#main"));
  addEventListener("beforeprint", () => redraw({ everything: true }));
  follow();
}

start();
