// What follows from the runs' scores, for what is chosen.

const styles = methodStyles(report.methods);
const methodClass = (m) => `c${styles[m].colour}`;
const streamName = (s) => report.streams[s].name;
const unitOf = (s) => report.streams[s].unit;
const digitsOf = (s) => (report.streams[s].metric === "accuracy" ? 1 : 2);
const signOf = (s) => (report.streams[s].higher_is_better ? 1 : -1);
const inOrder = (set) => [...set].sort((a, b) => a - b);
const chosenStreams = () => inOrder(chosen.streams);
const chosenMethods = () => inOrder(chosen.methods);
const isChosen = (run) => chosen.streams.has(run.stream) && chosen.methods.has(run.method) && seedChosen(run);
const seedChosen = (run) => chosen.seeds.has(seeds.indexOf(run.seed));
const chosenRuns = () => report.runs.filter(isChosen);

/** Positions of a run's chosen tasks. */
const chosenTasks = (run) => [...run.tasks.keys()].filter((j) => chosen.tasks.has(run.taskIds[j]));

for (const run of report.runs) {
  const rows = run.after.filter((row) => row.length);
  run.final = rows.at(-1) ?? [];
  // A task's first score is from right after it was learned; initial tasks are learned together.
  run.forward = run.tasks.map((_, j) => rows.find((row) => known(row[j]))?.[j] ?? null);
  run.complete = run.status === "done";
}

/** Averages over fewer tasks do not compare: unfinished runs count only where no run is finished. */
const finished = new Set(report.runs.filter((run) => run.complete).map((run) => run.stream));
const counts = (run) => run.complete || !finished.has(run.stream);
const byMethod = new Map();
for (const run of report.runs) {
  const key = `${run.stream} ${run.method}`;
  byMethod.set(key, [...(byMethod.get(key) ?? []), run]);
}
const runsOf = (s, m) => (byMethod.get(`${s} ${m}`) ?? []).filter(seedChosen);
const countedRuns = (s, m) => runsOf(s, m).filter(counts);

function noteOnRuns() {
  const out = chosenRuns().filter((run) => !counts(run)).length;
  const early = chosenStreams().filter((s) => !finished.has(s) && report.runs.some((run) => run.stream === s));
  return [
    out ? `${count(out, "unfinished run")} left out.` : "",
    early.length
      ? `No run is finished on ${early.map(streamName).join(", ")}: numbers are of the tasks learned so far.`
      : "",
  ].join(" ").trim();
}

const averageOf = (run, scores) => mean(chosenTasks(run).map((j) => scores[j]));

/** Mean over tasks, then mean and standard error over seeds. */
function performance(s, m) {
  const runs = countedRuns(s, m);
  return {
    final: meanAndError(runs.map((run) => averageOf(run, run.final))),
    forward: meanAndError(runs.map((run) => averageOf(run, run.forward))),
  };
}

const paperOf = (s, m) => report.paper.find(([stream, method]) => stream === s && method === m)?.[2] ?? null;

/** Is there a run of the paper's baseline, NFT without components, to compare with on a stream? */
const hasBaseline = (s) => report.runs.some((run) => run.stream === s && run.reference !== null);

/** By how many percent a method is better than the baseline's final score: {seed: {forward, final}}. */
function gainsOf(s, m) {
  const gains = new Map();
  for (const run of countedRuns(s, m).filter((each) => each.reference !== null)) {
    const reference = report.runs[run.reference];
    const base = averageOf(reference, reference.final);
    const gain = (score) => (known(score) && base ? (100 * signOf(s) * (score - base)) / base : null);
    if (known(base))
      gains.set(run.seed, { forward: gain(averageOf(run, run.forward)), final: gain(averageOf(run, run.final)) });
  }
  return gains;
}

/** Score when first learned to score in the end, so that above 1 is forgotten, also for errors. */
function forgetting(run, j) {
  const [top, bottom] = signOf(run.stream) > 0 ? [run.forward[j], run.final[j]] : [run.final[j], run.forward[j]];
  return known(top) && bottom ? top / bottom : null;
}

/** The mean over runs at each position, of chosen tasks; runs may have their tasks in different orders. */
function byPosition(runs, value) {
  const length = Math.max(0, ...runs.map((run) => run.tasks.length));
  return range(length).map((j) =>
    meanAndError(runs.map((run) => (chosen.tasks.has(run.taskIds[j]) ? value(run, j) : null))));
}

/** The name of the task at a position, if all runs have the same there. */
function taskNameAt(runs, j) {
  const names = new Set(runs.map((run) => run.tasks[j]).filter(known));
  return names.size === 1 ? `${j + 1} ${[...names][0]}` : `task ${j + 1}`;
}

/** Is a task's final score worse by more than 5 % without a component? */
function needs(run, j, c) {
  const [with_it, without] = [run.final[j], run.removed[j]?.[c]];
  if (!known(with_it) || !known(without)) return false;
  return signOf(run.stream) * (with_it - without) > 0.05 * with_it + 1e-9;
}

/** How many chosen tasks need each component, most first. */
function reuse(run) {
  const size = Math.max(0, ...run.removed.map((row) => row.length));
  return range(size)
    .map((c) => chosenTasks(run).filter((j) => needs(run, j, c)).length)
    .sort((a, b) => b - a);
}

/** The task with which each component came; -1: from the start. */
function births(run) {
  const size = Math.max(0, ...run.structures.map((task) => task.length));
  const kept = run.candidates.filter((candidate) => candidate.kept).map((candidate) => candidate.task);
  kept.sort((a, b) => a - b);
  return range(size).map((c) => (c < size - kept.length ? -1 : kept[c - (size - kept.length)]));
}
