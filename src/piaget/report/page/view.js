// What is chosen, of streams, methods, seeds and tasks. It is kept in the address.

/** @type {ReportData} */
// @ts-expect-error All scripts are one module in the page, which may wait.
const report = await unpacked(document.getElementById("data").textContent);

const seeds = [...new Set(report.runs.map((run) => run.seed))].sort((a, b) => a - b);
const tasks = []; // of all streams: {stream, name}
const taskIds = new Map();

function taskId(stream, name) {
  const key = `${stream} ${name}`;
  if (!taskIds.has(key)) {
    taskIds.set(key, tasks.length);
    tasks.push({ stream, name });
  }
  return taskIds.get(key);
}

for (const run of report.runs) run.taskIds = run.tasks.map((name) => taskId(run.stream, name));

for (const { label, words } of report.methods) hints.set(label, words);

const KINDS = {
  streams: report.streams.map((stream) => stream.name),
  methods: report.methods.map((method) => method.label),
  seeds: seeds.map((seed) => `${seed}`),
  tasks: tasks.map((task) => task.name),
};
const chosen = {}; // by kind: the set of chosen positions

/** "0-3,7" for 0, 1, 2, 3, 7; "none" for nothing. */
function rangesOf(positions) {
  const parts = [];
  for (const i of [...positions].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last && last[1] === i - 1) last[1] = i;
    else parts.push([i, i]);
  }
  return parts.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(",") || "none";
}

function positionsOf(text, size) {
  const positions = new Set();
  for (const part of text.split(",")) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!match) continue;
    for (let i = Number(match[1]); i <= Math.min(Number(match[2] ?? match[1]), size - 1); i++) positions.add(i);
  }
  return positions;
}

function readChoice() {
  for (const [kind, labels] of Object.entries(KINDS)) {
    const text = options.get(kind);
    chosen[kind] = text === null ? new Set(labels.keys()) : positionsOf(text, labels.length);
  }
}

function choose(kind, positions) {
  goTo({ [kind]: positions.size === KINDS[kind].length ? null : rangesOf(positions) });
}

/** What a figure depends on: everything chosen, its own options, and its width. */
function signatureOf(id, node) {
  const relevant = [...options].filter(([key]) => key in KINDS || key.startsWith(`${id}-`));
  return `${relevant.join(" ")} ${node.clientWidth}`;
}

function checkboxes(kind) {
  const boxes = KINDS[kind].map((_, i) => {
    const box = element("input", { type: "checkbox", name: kind, value: i });
    box.addEventListener("change", () => {
      const next = new Set(chosen[kind]);
      if (box.checked) next.add(i);
      else next.delete(i);
      choose(kind, next);
    });
    return box;
  });
  const labelled = boxes.map((box, i) => element("label", { title: hints.get(KINDS[kind][i]) }, box, ` ${KINDS[kind][i]}`));
  return { boxes, labelled };
}

/** Tasks of several streams are listed stream by stream. */
function grouped(kind, labelled) {
  if (kind !== "tasks" || report.streams.length < 2) return labelled;
  return report.streams.flatMap((stream, s) => {
    const boxes = labelled.filter((_, i) => tasks[i].stream === s);
    return boxes.length ? [element("p", { class: "of" }, stream.name), ...boxes] : [];
  });
}

function choosing() {
  const everything = [];
  const fieldsets = Object.keys(KINDS).map((kind) => {
    const { boxes, labelled } = checkboxes(kind);
    everything.push([kind, boxes]);
    const button = (text, positions) =>
      element("button", {
        type: "button", class: "small", "aria-label": `${text} ${kind}`, onclick: () => choose(kind, positions),
      }, text);
    return element("fieldset", {},
      element("legend", {}, kind[0].toUpperCase() + kind.slice(1)),
      element("div", { class: "buttons" }, button("all", new Set(boxes.keys())), button("none", new Set())),
      element("div", { class: "boxes" }, ...grouped(kind, labelled)));
  });
  const summary = element("span", { class: "muted" });
  const node = element("details", { id: "choosing" },
    element("summary", {}, "Choosing ", summary),
    element("form", { onsubmit: (event) => event.preventDefault() }, ...fieldsets));
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    node.open = false;
    node.querySelector("summary").focus();
  });
  const update = () => {
    for (const [kind, boxes] of everything)
      for (const [i, box] of boxes.entries()) box.checked = chosen[kind].has(i);
    summary.textContent = Object.entries(KINDS).map(([kind, { length }]) => {
      const { size } = chosen[kind];
      return `${size === length ? length : `${size} of ${length}`} ${length === 1 ? kind.slice(0, -1) : kind}`;
    }).join(" · ");
  };
  return { node, update };
}
