// The page from top to bottom. Sections that the run has nothing for are not there.

const paragraph = (text) => element("p", { class: "words" }, text);

/** Two things side by side, where there is room; the second may be missing. */
const pair = (first, second, className = "") =>
  known(second) ? element("div", { class: `pair ${className}` }, first, second) : first;

// --- is it good? ---

/** Which scores are better if they are higher, and which if they are lower. */
function directionOfScores() {
  const named = (higher) => run.metrics.filter((each) => each.higher_is_better === higher).map(({ name }) => name);
  return [[true, "higher"], [false, "lower"]].filter(([higher]) => named(higher).length)
    .map(([higher, word]) => `${capital(listed(named(higher)))}: ${word} is better.`).join(" ");
}

function modelsTable() {
  const best = (key, higher) => {
    const values = run.models.map((model) => model.means[key]).filter(known);
    return higher ? Math.max(...values) : Math.min(...values);
  };
  const least = run.metrics.map(({ key, higher_is_better: higher }) => best(key, higher));
  const rows = known(run.tested) ? `, on ${count(run.tested, "row")} that were not learned from` : "";
  return sortableTable({
    name: "Models", caption: `${run.means_over}${rows}. ${directionOfScores()}`,
    columns: ["Model", ...run.metrics.map(({ name }) => name)],
    rows: run.models.map((model) => [model.name, ...run.metrics.map(({ key, digits }) => cell(model.means[key], digits))]),
    isBest: (r, c) => c > 0 && run.models[r].means[run.metrics[c - 1].key] === least[c - 1],
  }).node;
}

function overview() {
  const [first, ...others] = run.metrics;
  const said = others.map((each) => each.verdict && `By ${each.name}: ${each.verdict}`).filter(known);
  const none = run.metrics.length ? "There was no simple model to compare with." : "There were no test rows to score.";
  return section("overview", "Is it good?",
    element("p", { class: "lead" }, first?.verdict ?? none),
    ...run.notes.map((note) => element("p", { class: "notes" }, note)),
    element("dl", { class: "facts" }, ...run.facts.map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    run.metrics.length
      ? pair(modelsTable(), said.length ? element("ul", { class: "sentences" }, ...said.map((text) => element("li", {}, text))) : null,
        "wide-first")
      : null);
}

// --- which groups are predicted badly? ---

function groupsTable() {
  const { name, digits, best } = metric();
  const groups = worstFirst();
  const positives = groups.some((group) => known(group.positives));
  const tested = groups.some((group) => known(group.tested));
  const simplest = groups.some((group) => known(scoreOf(group).majority));
  return sortableTable({
    name: "Groups",
    caption: `The worst first. ${capital(name)}; the simple model: ${modelName(best)}. Difference: above 0, piaget is better.` +
      (simplest ? ` ${capital(run.simplest)}: ${modelName("majority")} alone.` : ""),
    columns: [capital(run.group), "Rows", ...(positives ? [`${run.target}=${run.positive}`] : []),
      "Piaget", "Simple", "Difference", ...(simplest ? [capital(run.simplest)] : []), ...(tested ? ["Test rows"] : [])],
    rows: groups.map((group) => {
      const { piaget, simple, gain, majority } = scoreOf(group);
      return [group.name, cell(group.rows, 0), ...(positives ? [cell(group.positives, 0)] : []),
        cell(piaget, digits), cell(simple, digits), signed(gain, digits), ...(simplest ? [cell(majority, digits)] : []),
        ...(tested ? [cell(group.tested, 0)] : [])];
    }),
  }).node;
}

/** In words: the worst groups, and those in which the simple model is better. */
function groupWords() {
  const { name, digits } = metric();
  const scored = worstFirst().filter((group) => known(scoreOf(group).piaget));
  const worst = scored.slice(0, 3).map((group) => `${group.name} (${format(scoreOf(group).piaget, digits)})`);
  const gains = scored.map((group) => scoreOf(group).gain).filter(known);
  const worse = gains.filter((gain) => gain < 0).length;
  return `Worst by ${name}: ${listed(worst)}.` +
    (gains.length ? ` In ${worse} of ${count(gains.length, "group")}, the simple model is better.` : "") +
    " With few test rows, a group's score says little.";
}

function groupsSection() {
  const score = chooser("score", "Score");
  const place = element("div");
  const words = element("p", { class: "words" });
  lazily(place, () => signatureOf("groups", place), () => {
    score.update(run.metrics.map(({ key, name }) => [key, name]));
    words.textContent = groupWords();
    place.replaceChildren(groupsTable());
  });
  return section("groups", "Which groups are predicted badly?",
    element("div", { class: "controls" }, score.node), words,
    pair(element("div", { class: "given" }, place), figure({
      id: "pairs", title: "Group by group", caption: "Piaget beside the simple model that is best in the mean.",
      when: run.groups.some((group) => run.metrics.some(({ key }) => known(group.scores[key].gain))), draw: drawPairs,
    }), "with-groups"));
}

// --- which classes are predicted badly? ---

function classesSection() {
  const weighted = run.classes.some(({ weight }) => weight !== 1);
  return section("classes", "Which classes are predicted badly?", pair(
    paragraph("On the test rows of all groups together, each class against all others. Precision: of the rows that are said to be of a " +
      "class, the share that is. Recall: of the rows that are, the share that is said to be. F1 is the harmonic mean of both; AUC " +
      "does not depend on which class is answered." +
      (weighted ? " The class that is answered is the one with the largest weight x probability; probabilities themselves are not weighted." : "")),
    sortableTable({
      name: "Classes", caption: `Scores by ${run.target}.`,
      columns: [capital(run.target), "Rows", "Answered", "Precision", "Recall", "F1", "AUC", ...(weighted ? ["Weight"] : [])],
      rows: run.classes.map(({ name, rows, answered, precision, recall, f1, auc, weight }) =>
        [name, cell(rows, 0), cell(answered, 0), ...[precision, recall, f1, auc].map((value) => cell(value, 3)),
          ...(weighted ? [cell(weight, 3)] : [])]),
    }).node, "wide-second"));
}

// --- can it be trusted? ---

function trustSection() {
  if (run.bins.length)
    return section("trust", "Can it be trusted?", figure({
      id: "calibration", title: "What was predicted, and what happened",
      caption: "Test rows of all groups, by their predicted probability. Near the dotted line, probabilities mean what they " +
        "say. Larger marks stand for more rows; lines up and down are standard errors." +
        (known(run.calibration_error)
          ? ` In the mean over rows, the two are ${format(run.calibration_error, 3)} apart (expected calibration error), some of which is chance.` : ""),
      beside: true, draw: drawBins,
    }));
  return section("trust", "Can it be trusted?", figure({
    id: "coverage", title: "What intervals hold",
    caption: "An interval of 90 % ought to hold 90 % of the values. Above the dotted line, intervals are wider than need be; " +
      "below it, they promise too much. The values are those of the test rows of all groups.",
    beside: true, draw: drawCoverage,
  }));
}

// --- what groups share, and what columns do ---

const MAP = "Which groups are alike?";

/** @param {MapData} map */
function mapSection(map) {
  const flat = map.directions.length < 2;
  return section("map", MAP, pair(element("div", {},
    paragraph(`What is known of a ${run.group} is what all have in common, what some share, and a rest of its own. ` +
      "The map shows what some share: groups that lie near each other are answered much alike. The farther a group lies along a direction, the more this holds:"),
    element("ul", { class: "sentences" }, ...map.directions.map((direction, i) => element("li", {},
      element("strong", {}, capital(directionName(i))),
      ` (${percent(direction.share)} of what differs${flat ? "" : i === 0 ? ", to the right" : i === 1 ? ", upwards" : ""}): ` +
      `${direction.words.join("; ")}.`)))),
    figure({
      id: "alike", title: "Map of groups", caption: HIDDEN_NAMES,
      draw: (panels) => drawMap(panels, map),
    })));
}

/** Where trees correct the answers, or groups bend, weights do not tell all that columns do. */
function movedFigure() {
  return figure({
    id: "moved", title: "How much answers depend on a column",
    caption: `How far answers move if the values of a column are exchanged among rows at random, those of all other columns staying: the ${run.unit}, ` +
      "as a change by a standard deviation would make it. These are whole answers, with what boosted trees add where effects are not " +
      `linear${run.bends.length ? ", and with bends" : ""}; they say how much a column matters, not in which direction. Of at most 1,000 rows that were learned.`,
    beside: true, draw: drawMoved,
  });
}

function columnsSection() {
  const trees = run.trees ? " What boosted trees add where effects are not linear is not in it: a column that matters only together " +
    "with another, or bends the answer up and down, may seem to do nothing here." : "";
  const bends = run.bends.length ? " Where groups bend, it is that of the line that comes nearest." : "";
  const shown = run.kind === "multiclass"
    ? " The full bar is the mean of all groups, the hollow one how much groups differ. Both are sizes, of all classes together: they do not " +
      "say which class the column points to."
    : " The mark is the mean of all groups, the bar around it how much groups differ. To the right of 0, more of the column raises the " +
      "answer; to the left, it lowers it.";
  return section("columns", "Which columns matter?", ...(run.moved.length ? [movedFigure()] : []), figure({
    id: "effects", title: run.moved.length ? "What a change of a column does, as far as that is linear" : "What a change of a column does",
    caption: `The ${run.unit}, if a number changes by its standard deviation, or a category comes in place of the others (of two values: from the first ` +
      `to the second), all else being equal.${shown}${bends}${trees}`,
    beside: true, draw: drawColumns,
  }));
}

// --- later tables, and words ---

function laterSection() {
  const [first] = run.metrics;
  return section("later", "What came later", sortableTable({
    name: "Later tables",
    caption: "Rows of tables that were learned later, in order, and how they were answered before they were learned. A new group is " +
      "typical if the others explain its rows about as well as each other's, else unusual; in brackets, how well (log-density).",
    columns: ["Table", capital(run.group), "Was", "New rows", ...(first ? [`${first.name} before`] : []), "Fit with the others"],
    rows: run.arrivals.map(({ table, group, is_new: isNew, rows, scores, fit: how }) =>
      [table, group, isNew ? "new" : "known", cell(rows, 0), ...(first ? [cell(scores[first.key], first.digits)] : []), how || "–"]),
  }).node);
}

function wordsSection() {
  const simple = run.models.filter(({ key }) => key !== "piaget");
  const term = (name, text) => [element("dt", {}, name), element("dd", {}, text)];
  return section("words", "How it was made", pair(element("div", {},
    paragraph(`Piaget predicts ${run.target} for each ${run.group}, one model a group; but groups learn from each other. A group's ` +
      "weights are what all groups have in common, plus what some share (the components), plus a rest of its own. How much there is of " +
      "each is estimated from all groups, so a group with few rows leans on the others, and one with many stands on its own. " +
      run.bends.map(({ words }) => `${words} `).join("") +
      (run.trees ? "Boosted trees correct what is not linear. " : "") +
      "Scores come from rows that were held out; after scoring, these were learned, too, unless you chose them yourself."),
    ...(simple.length
      ? [paragraph("The simple models learned from the same rows, and were scored on the same ones. The best of them is the one with " +
        `the best mean on these very test rows, which favours it a little. They are: ${simple.map(({ name }) => name).join("; ")}.`)]
      : [])),
    element("dl", { class: "terms" }, ...run.metrics.flatMap(({ name, words }) => term(name, `${words}.`)),
      ...term("Worth it", "the mean difference over groups is more than two standard errors above 0 (more, where groups are few)."))),
    element("h3", {}, "Again"), commandLine(run.command),
    element("h3", {}, "For new rows"), commandLine(run.predict));
}

// --- everything ---

function content() {
  if (!run) return [section("overview", "Overview", element("dl"), paragraph("There is no run to show."))];
  return [
    overview(),
    ...(run.groups.length && run.metrics.length ? [groupsSection()] : []),
    ...(run.classes.length ? [classesSection()] : []),
    ...(run.bins.length || run.coverage.length ? [trustSection()] : []),
    ...(run.map ? [mapSection(run.map)] : run.no_map ? [section("map", MAP, paragraph(run.no_map))] : []),
    ...(run.bends.length ? [bendsSection()] : []),
    ...(run.columns.length ? [columnsSection()] : []),
    ...(run.arrivals.length ? [laterSection()] : []),
    wordsSection(),
  ];
}

// The questions are too long for the bar: of all of them, a phone would show two.
const SHORT = { groups: "Groups", classes: "Classes", trust: "Trust", map: "Map", bends: "Bends", columns: "Columns", later: "Later", words: "Method" };

const runs = chooser("run", "Run");
const sections = content();
for (const entry of INDEX) entry[1] = SHORT[entry[0]] ?? entry[1];
frame(report, sections, report.runs.length > 1 ? runs.node : null, () => {
  if (runNumber() !== shownRun) location.reload(); // the other run has other sections
  runs.update(report.runs.map(({ name }, i) => [i, name]));
});
