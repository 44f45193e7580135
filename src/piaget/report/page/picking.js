// Which of what is chosen a figure shows, and how methods are called in it.

const labelOf = (m) => report.methods[m].label;
/** @param {RunData} run */
const runLabel = (run) => `${streamName(run.stream)}, ${labelOf(run.method)}, seed ${run.seed}`;

/** The chosen stream of a figure that shows one at a time; undefined if none has anything to show. */
function streamFor(control, has) {
  const fits = chosenStreams().filter((s) => report.runs.some((run) => run.stream === s && isChosen(run) && has(run)));
  const value = control.update(fits.map((s) => [s, streamName(s)]));
  return value === undefined ? undefined : Number(value);
}

/** The chosen run of a figure that shows one at a time. */
function runFor(controls, has) {
  let fits = chosenRuns().filter(has);
  /** @type {["stream" | "method" | "seed", (value: number) => string][]} */
  const choices = [["stream", streamName], ["method", labelOf], ["seed", String]];
  for (const [key, label] of choices) {
    const value = controls[key].update([...new Map(fits.map((run) => [run[key], label(run[key])]))]);
    fits = fits.filter((run) => `${run[key]}` === value);
  }
  return fits[0];
}

const methodLegend = (methods) =>
  legend(methods.map((m) => ({ label: labelOf(m), hint: report.methods[m].words, className: methodClass(m), ...styles[m], colour: null, line: true })));
