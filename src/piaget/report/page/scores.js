// What follows from the runs' scores, for what is chosen.

const styles = methodStyles(report.methods);
const methodClass = (m) => `c${styles[m].colour}`;
const streamName = (s) => report.streams[s].name;
const unitOf = (s) => report.streams[s].unit;
const digitsOf = (s) => report.streams[s].digits;
const signOf = (s) => (report.streams[s].higher_is_better ? 1 : -1);
const inOrder = (set) => [...set].sort((a, b) => a - b);
const chosenStreams = () => inOrder(chosen.streams);
const chosenMethods = () => inOrder(chosen.methods);
/** @param {RunData} run */
const isChosen = (run) => chosen.streams.has(run.stream) && chosen.methods.has(run.method) && seedChosen(run);
/** @param {RunData} run */
const seedChosen = (run) => chosen.seeds.has(seeds.indexOf(run.seed));
const chosenRuns = () => report.runs.filter(isChosen);

/** @type {(run: RunData, j: number) => boolean} */
const taskChosen = (run, j) => chosen.tasks.has(run.taskIds[j]);

/** Positions of a run's chosen tasks. @param {RunData} run */
const chosenTasks = (run) => [...run.tasks.keys()].filter((j) => taskChosen(run, j));

/** @type {Map<string, RunData[]>} */
const byMethod = new Map();
for (const run of report.runs) {
  const key = `${run.stream} ${run.method}`;
  byMethod.set(key, [...(byMethod.get(key) ?? []), run]);
}
const runsOf = (s, m) => (byMethod.get(`${s} ${m}`) ?? []).filter(seedChosen);
const countedRuns = (s, m) => runsOf(s, m).filter((run) => run.counted);

function noteOnRuns() {
  const out = chosenRuns().filter((run) => !run.counted).length;
  const early = new Set(chosenRuns().filter((run) => run.counted && run.status !== "done").map((run) => run.stream));
  return [
    out ? `${count(out, "unfinished run")} left out.` : "",
    early.size
      ? `No run is finished on ${[...early].map(streamName).join(", ")}: numbers are of the tasks learned so far.`
      : "",
  ].join(" ").trim();
}

/**
 * The mean over chosen tasks: null if there are none, NaN if a score is not a number.
 * @param {RunData} run
 * @param {(number | null)[]} scores
 */
function averageOf(run, scores) {
  const values = chosenTasks(run).map((j) => scores[j]);
  return values.every(known) ? mean(values) : NaN;
}

/** Mean over tasks, then mean and standard error over seeds. */
function performanceOf(s, m) {
  const runs = countedRuns(s, m);
  return {
    final: meanAndError(runs.map((run) => averageOf(run, run.final))),
    forward: meanAndError(runs.map((run) => averageOf(run, run.first))),
  };
}

/** Those with a number, the best first. @type {<T extends { final: Mean }>(lines: T[], sign: number) => T[]} */
const ranked = (lines, sign) => lines.filter(({ final }) => known(final.mean))
  .sort((a, b) => sign * (Number(b.final.mean) - Number(a.final.mean)));

const paperOf = (s, m) => report.paper.find(([stream, method]) => stream === s && method === m)?.[2] ?? null;

/** Is there a run of the paper's baseline, NFT without components, to compare with on a stream? */
const hasBaseline = (s) => report.runs.some((run) => run.stream === s && run.reference !== null);

/** By how many percent a method is better than the baseline's final score: {seed: {forward, final}}. */
function gainsOf(s, m) {
  const gains = new Map();
  for (const run of countedRuns(s, m)) {
    const reference = report.runs[run.reference ?? -1];
    const base = reference && averageOf(reference, reference.final);
    if (!known(base)) continue;
    const gain = (score) => (known(score) ? (100 * signOf(s) * (score - base)) / (base || NaN) : null);
    gains.set(run.seed, { forward: gain(averageOf(run, run.first)), final: gain(averageOf(run, run.final)) });
  }
  return gains;
}

/** The mean over runs at each position, of chosen tasks; runs may have their tasks in different orders. */
function byPosition(runs, value) {
  const length = Math.max(0, ...runs.map((run) => run.tasks.length));
  return range(length).map((j) =>
    meanAndError(runs.map((run) => (taskChosen(run, j) ? value(run, j) : null))));
}

/** The name of the task at a position, if all runs have the same there. */
function taskNameAt(runs, j) {
  const names = new Set(runs.map((run) => run.tasks[j]).filter(known));
  return names.size === 1 ? `${j + 1} ${[...names][0]}` : `task ${j + 1}`;
}

/** How many chosen tasks need each component, most first. @param {RunData} run */
const reuse = (run) => (run.reused[0] ?? [])
  .map((_, c) => chosenTasks(run).filter((j) => run.reused[j][c]).length)
  .sort((a, b) => b - a);
