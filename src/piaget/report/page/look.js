// The first look: what must be known before any number, then questions, their answers, and the evidence. All of it is
// computed in Python, of all runs; the page leaves out what is about streams that are not chosen.

const WIDE = matchMedia("(min-width: 56rem)");

function keyFigures() {
  const runs = chosenRuns();
  const done = runs.filter((run) => run.status === "done").length;
  const number = (key) => new Set(runs.map((run) => run[key])).size;
  const facts = [
    ["runs", done === runs.length ? `${runs.length}` : `${done} of ${runs.length} done`],
    ...["stream", "method", "seed"].map((key) => [number(key) === 1 ? key : `${key}s`, `${number(key)}`]),
    ["time of all runs", report.total_time], ["most memory", report.most_memory],
  ].filter(([, value]) => value);
  return element("dl", { class: "facts row" }, ...facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function alertList() {
  const alerts = report.alerts.filter(({ stream }) => chosen.streams.has(stream));
  if (!alerts.length) return null;
  return element("ul", { class: "alerts", "aria-label": "Before you read on" }, ...alerts.map(({ kind, text }) =>
    element("li", {}, element("strong", {}, kind), " ", text)));
}

/** @type {(answer: AnswerData, open: boolean) => Element} */
function answerCard({ question, tone, headline, basis, evidence, links }, open) {
  const there = links.filter(([id]) => document.getElementById(id));
  return element("div", { class: `answer ${tone}` },
    element("h4", {}, question),
    element("p", { class: "headline" }, headline),
    element("p", { class: "basis" }, basis),
    element("details", { open },
      element("summary", {}, "More"),
      ...evidence.map((line) => element("p", {}, line)),
      there.length
        ? element("p", {}, ...there.flatMap(([id, title], i) =>
          [i ? " · " : "", element("a", { href: `#at=${id}` }, title)]))
        : null));
}

/** @type {(look: LookData, open: boolean) => Element} */
const streamLook = ({ stream, answers, limits }, open) => element("div", { class: "look" },
  element("h3", {}, streamName(stream)),
  element("div", { class: "answers" }, ...answers.map((answer) => answerCard(answer, open))),
  limits ? element("p", { class: "note" }, limits) : null);

/** Names in words, for those who have no pointer to hover with. */
function methodNames() {
  return element("details", { class: "names" }, element("summary", {}, "What the methods are"),
    element("dl", { class: "terms" }, ...report.methods.flatMap(({ label, words }) =>
      [element("dt", {}, label), element("dd", {}, `${words}.`)])));
}

function overview() {
  const place = element("div");
  const node = section("overview", "At a glance", place);
  node.querySelector("h2")?.classList.add("unseen"); // the first screen is for answers
  lazily(place, () => signatureOf("overview", node), () => {
    const looks = report.looks.filter(({ stream, answers }) => chosen.streams.has(stream) && answers.length);
    const some = ["methods", "seeds", "tasks"].filter((kind) => chosen[kind].size < KINDS[kind].length);
    const open = WIDE.matches && looks.length === 1;
    const empty = report.runs.length ? "No run with scores is chosen." : "There are no runs yet.";
    place.replaceChildren(...[
      alertList(),
      report.overall && looks.length > 1 ? element("p", { class: "lead" }, report.overall) : null,
      ...(chosenRuns().length ? looks.map((look) => streamLook(look, open)) : [element("p", {}, empty)]),
      looks.length && some.length
        ? element("p", { class: "note" }, `These answers are about all ${some.join(" and ")} of a stream; figures and ` +
          "tables follow what is chosen.")
        : null,
      keyFigures(),
      report.methods.length && report.runs.length ? methodNames() : null,
    ].filter(known));
  });
  return node;
}
