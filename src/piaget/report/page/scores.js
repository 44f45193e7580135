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

const countedRuns = (s, m) =>
  report.runs.filter((run) => run.counted && run.stream === s && run.method === m && seedChosen(run));

function noteOnRuns() {
  const out = chosenRuns().filter((run) => !run.counted).length;
  const early = new Set(chosenRuns().filter((run) => run.counted && run.status !== "done").map((run) => run.stream));
  const names = [...early].map(streamName).join(", ");
  return (out ? `${count(out, "unfinished or failed run")} left out. ` : "") +
    (names ? `No run is finished on ${names}: numbers are of the tasks learned so far.` : "");
}

/** @typedef {{ final: number | null, forward: number | null }} Averages: means over chosen tasks */

/**
 * A run's scores of those tasks that have them. `name`: of a further score, such as "AUC"; empty: the usual one.
 * @type {(run: RunData, name: string) => FurtherData | undefined}
 */
const scoresOf = (run, name) =>
  (name ? run.further[name] : { tasks: [...run.tasks.keys()], first: run.first, final: run.final });

/** Where in a run's scores the chosen tasks are. @type {(run: RunData, name: string) => number[]} */
const placesOf = (run, name) =>
  (scoresOf(run, name)?.tasks ?? []).flatMap((j, i) => (taskChosen(run, j) ? [i] : []));

/** Null if no task is chosen, NaN if a score is not a number. @type {(run: RunData, name?: string) => Averages} */
function averagesOf(run, name = "") {
  const places = placesOf(run, name);
  const average = (scores) => {
    const some = places.map((i) => scores?.[i]);
    return some.every(known) ? mean(some) : NaN;
  };
  const scores = scoresOf(run, name);
  return { final: average(scores?.final), forward: average(scores?.first) };
}

/** Accuracy of the most frequent class, mean over chosen tasks, then over runs; null if it is not known of all. */
function majorityOf(runs) {
  const values = runs.map((run) => chosenTasks(run).map((j) => run.majority[j]));
  return values.flat().every(known) ? mean(values.map(mean)) : null;
}

/** Mean and standard error over seeds. @param {Averages[]} averages */
const summary = (averages) => ({
  final: meanAndError(averages.map(({ final }) => final)),
  forward: meanAndError(averages.map(({ forward }) => forward)),
});

const performanceOf = (s, m, name = "") => summary(countedRuns(s, m).map((run) => averagesOf(run, name)));

/** Of how many tasks a mean is, from the run with the fewest to that with the most: "27–29". */
function tasksOf(s, m, name) {
  const counts = countedRuns(s, m).map((run) => placesOf(run, name).length).filter((n) => n);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return counts.length ? (least === most ? `${least}` : `${least}–${most}`) : "–";
}

/** Those with a number, the best first. @type {<T extends { final: Mean }>(lines: T[], sign: number) => T[]} */
const ranked = (lines, sign) => lines.filter(({ final }) => known(final.mean))
  .sort((a, b) => sign * (Number(b.final.mean) - Number(a.final.mean)));

/** The paper's final performance. @returns {Mean | null} */
function paperOf(s, m) {
  const line = report.paper.find(([stream, method]) => stream === s && method === m);
  return line ? { mean: line[2], error: line[3], n: 0 } : null;
}

/** Is there a run of the paper's baseline, NFT without components, to compare with on a stream? */
const hasBaseline = (s) => report.runs.some((run) => run.stream === s && run.reference !== null);

/** By how many percent a method is better than the baseline's final score: {seed: {forward, final}}. */
function gainsOf(s, m) {
  const gains = new Map();
  for (const run of countedRuns(s, m)) {
    const reference = report.runs[run.reference ?? -1];
    const base = reference && averagesOf(reference).final;
    if (!known(base)) continue;
    const gain = (score) => (known(score) ? (100 * signOf(s) * (score - base)) / (base || NaN) : null);
    const { final, forward } = averagesOf(run);
    gains.set(run.seed, { final: gain(final), forward: gain(forward) });
  }
  return gains;
}

/** Of chosen tasks, the mean over runs at each position; runs may have their tasks in different orders. */
const ratiosByPosition = (runs) => range(Math.max(0, ...runs.map((run) => run.tasks.length)))
  .map((j) => meanAndError(runs.map((run) => (taskChosen(run, j) ? run.ratio[j] : null))));

/** The name of the task at a position, if all runs have the same there. */
function taskNameAt(runs, j) {
  const name = plainNameAt(runs, j);
  return name === `task ${j + 1}` ? name : `${j + 1} ${name}`;
}

/** The same, in a sentence. */
const plainNameAt = (runs, j) => {
  const names = new Set(runs.map((run) => run.tasks[j]).filter(known));
  return names.size === 1 ? [...names][0] : `task ${j + 1}`;
};

/** How many chosen tasks need each component, most first. @param {RunData} run */
const reuse = (run) => (run.reused[0] ?? [])
  .map((_, c) => chosenTasks(run).filter((j) => run.reused[j][c]).length)
  .sort((a, b) => b - a);

/** At most `most` of these, evenly spread from the first to the last. */
const spread = (items, most) => (items.length <= most
  ? items : range(most).map((i) => items[Math.round((i * (items.length - 1)) / (most - 1))]));

/** Neighbours together, so that there are at most `most` bins. */
function binned(items, most) {
  const size = Math.ceil(items.length / Math.max(most, 1));
  return range(Math.ceil(items.length / size)).map((i) => items.slice(i * size, (i + 1) * size));
}

const MOST_TASKS = 24; // that are drawn one by one

/** Which of many tasks can be drawn one by one, as the choices of a select: some of all, or neighbours. */
const windowsOf = (positions) => (positions.length <= MOST_TASKS ? [] : [
  ["spread", `${MOST_TASKS} tasks, from first to last`],
  ...windows(positions).map((bin) => [`${bin[0]}`, `tasks ${bin[0] + 1} to ${Number(bin.at(-1)) + 1}`])]);
const windows = (positions) => binned(positions, Math.ceil(positions.length / MOST_TASKS));
/** Those that are meant by a choice. */
const windowAt = (positions, value) => windows(positions).find((bin) => `${bin[0]}` === value) ?? spread(positions, MOST_TASKS);

/** @type {(bin: number[], run: RunData) => string} */
const namesOf = (bin, run) => (bin.length === 1
  ? `${bin[0] + 1} ${run.tasks[bin[0]]}` : `tasks ${bin[0] + 1} to ${Number(bin.at(-1)) + 1}`);
