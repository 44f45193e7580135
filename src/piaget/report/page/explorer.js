// The component explorer: a slider for every component at every depth of one run.

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
