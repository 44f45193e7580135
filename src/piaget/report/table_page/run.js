// The run that is shown, and the score that is chosen. Both are kept in the address.

/** @type {OwnReportData} */
// @ts-expect-error All scripts are one module in the page, which may wait.
const report = await unpacked(document.getElementById("data").textContent);

readOptions();

function runNumber() {
  const wanted = Number(options.get("run") ?? 0);
  return report.runs[wanted] ? wanted : 0;
}

const shownRun = runNumber();
const run = report.runs[shownRun];

/** By which groups are compared. */
const metric = () => run.metrics.find(({ key }) => key === options.get("score")) ?? run.metrics[0];

/** What a figure depends on: the score, its own options, and its width. */
function signatureOf(id, node) {
  const relevant = [...options].filter(([key]) => key === "score" || key.startsWith(`${id}-`));
  return `${relevant.join(" ")} ${node.clientWidth}`;
}

/** @returns {CellData} */
const cell = (value, digits) => ({ text: format(value, digits), value });

/** With a sign, also if it is positive. @returns {CellData} */
function signed(value, digits) {
  const text = format(value, digits);
  return { text: known(value) && Number(value.toFixed(digits)) > 0 ? `+${text}` : text, value };
}

const modelName = (key) => run.models.find((model) => model.key === key)?.name ?? "no simple model";

/** @param {OwnGroupData} group */
const scoreOf = (group) => group.scores[metric().key];

/** Those that have a score, the worst first; the others after them. */
function worstFirst() {
  const sign = metric().higher_is_better ? 1 : -1;
  const rank = (group) => {
    const { piaget } = scoreOf(group);
    return known(piaget) ? sign * piaget : Infinity;
  };
  return [...run.groups].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)));
}

const percent = (share, digits = 0) => `${format(100 * share, digits)} %`;

const listed = (words) =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
