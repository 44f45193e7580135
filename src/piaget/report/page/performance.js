// Final and forward performance.

/** `score`: a further one, or null for each stream's usual one. */
function performanceGroups(mode, score) {
  const methods = chosenMethods();
  if (score)
    return chosenStreams().map((s) => ({
      title: streamName(s), unit: score.name, digits: score.digits, sign: score.higher_is_better ? 1 : -1,
      lines: methods.map((m) =>
        ({ m, ...performanceOf(s, m, score.name), paper: null, tasks: tasksOf(s, m, score.name) })),
      majority: null,
    }));
  if (mode !== "gain")
    return chosenStreams().map((s) => ({
      title: streamName(s), unit: unitOf(s), digits: digitsOf(s), sign: signOf(s),
      lines: methods.map((m) => ({ m, ...performanceOf(s, m), paper: paperOf(s, m), tasks: tasksOf(s, m, "") })),
      majority: majorityOf(methods.flatMap((m) => countedRuns(s, m))),
    }));
  const streams = chosenStreams().filter(hasBaseline);
  const gains = streams.map((s) => methods.map((m) => gainsOf(s, m)));
  const group = (title, averages) => ({
    title, unit: "gain in %", digits: 1, sign: 1, majority: null,
    lines: methods.map((m, i) => ({ m, ...summary(averages(i)), paper: null, tasks: "" })),
  });
  const single = streams.map((s, k) => group(streamName(s), (i) => [...gains[k][i].values()]));
  if (streams.length < 2) return single;
  // As in the paper: each seed's mean over all streams.
  const overall = group("Mean over the streams", (i) =>
    seeds.filter((seed) => gains.every((stream) => stream[i].has(seed))).map((seed) => ({
      final: mean(gains.map((stream) => stream[i].get(seed).final)),
      forward: mean(gains.map((stream) => stream[i].get(seed).forward)),
    })));
  return [overall, ...single];
}

/** @typedef {{ m: number, final: Mean, forward: Mean, paper: Mean | null, tasks: string }} Line */

const endsOf = ({ mean: middle, error }) =>
  (known(middle) ? [middle - (error ?? 0), middle + (error ?? 0)] : []);

/** A line at the accuracy of the most frequent class; far from all dots, `text` tells it at the edge instead. */
function drawMajority(chart, near, majority, text, low) {
  if (near) {
    const x = chart.x(majority);
    chart.add("line", { class: "line majority", x1: x, x2: x, y1: chart.top, y2: chart.bottom });
  } else {
    const below = majority < low;
    chart.text(below ? chart.left : chart.right, chart.top - 6, below ? `◂ ${text}` : `${text} ▸`,
      `tick majority${below ? "" : " end"}`, chart.right - chart.left);
  }
}

/**
 * Dots with error bars, the best method first, on an axis that shows differences.
 * @param {{ title: string, unit: string, digits: number, sign: number, lines: Line[], majority: number | null }}
 *   group
 */
function performancePanel({ title, unit, digits, sign, lines, majority }, width) {
  const narrow = width < 460; // then names stand above the dots
  const left = narrow ? 8 : Math.min(widest(lines.map(({ m }) => labelOf(m))), 0.4 * width) + 12;
  const row = narrow ? 58 : 36;
  const best = ranked(lines, sign);
  const chart = new Chart(
    `${title}, ${unit}: final and forward performance of ${count(lines.length, "method")}. ` +
      (best.length ? `Best in the end: ${labelOf(best[0].m)}, ${withError(best[0].final, digits)}.` : ""),
    { width, height: row * lines.length + 64, left, right: 16, top: 20, bottom: 44 });
  const ends = lines.flatMap(({ final, forward, paper }) =>
    [final, forward, paper ?? final].flatMap(endsOf));
  const [low, high] = extent(ends);
  const near = known(majority) && majority > low - 0.5 * (high - low) && majority < high + 0.5 * (high - low);
  const domain = near ? extent([...ends, majority]) : extent(ends);
  chart.xAxis(domain, unit);
  const alone = `most frequent class alone: ${format(majority, digits)}`;
  if (known(majority)) drawMajority(chart, near, majority, alone, low); // beneath names and dots
  [...best, ...lines.filter((line) => !best.includes(line))].forEach(({ m, final, forward, paper }, i) => {
    const top = chart.top + i * row;
    const y = top + (narrow ? 34 : 16);
    if (narrow) chart.nameAbove(top, labelOf(m));
    else chart.text(left - 8, y + 6, labelOf(m), "name end", left - 8);
    if (i) chart.add("line", { class: "grid", x1: 0, x2: chart.right, y1: top, y2: top });
    const name = narrow ? { x: 0, y: top + 2, width, height: 16 } : { x: 0, y: top + 6, width: left - 8, height: 24 };
    chart.target(name.x + 4, y, `${labelOf(m)}\n${report.methods[m].words}`, name);
    const dot = (value, what, at, mark, look, size) => {
      if (!known(value?.mean)) return;
      chart.errorBar(value, { y: at });
      chart.mark(chart.x(value.mean), at, mark, look, size);
      const seedsOf = value.n ? `\n${count(value.n, "seed")}` : "";
      chart.target(chart.x(value.mean), at, `${labelOf(m)}\n${what}: ${withError(value, digits)}${seedsOf}`,
        { x: chart.x(value.mean) - 6, y: at - 5, width: 12, height: 10 });
    };
    dot(paper, "final in the paper", y - 8, DIAMOND, "paper", 0.9);
    dot(forward, "forward", y + 11, CIRCLE, `${methodClass(m)} hollow`, 0.75);
    dot(final, "final", y + 2, CIRCLE, methodClass(m), 1.2);
  });
  if (near) chart.target(chart.x(majority), chart.bottom - 4, alone);
  return panel(title, chart.node);
}

figure({
  id: "performance",
  title: "Final and forward performance",
  caption: "Forward: a task's score right after it was learned. Final: its score after all tasks. Mean over tasks, " +
    "then mean and standard error over seeds; the best method first. The axis does not begin at zero." +
    (report.runs.some((run) => run.reference !== null)
      ? " Gain: by how many percent it is better than the final score of NFT No Comp. of the same seed." : "") +
    (report.scores.length
      ? " AUC: area under the ROC curve of binary tasks. Log-loss: mean cross-entropy; lower is better." : ""),
  choosers: { score: "Score", as: "Show as" },
  draw(panels, controls) {
    const there = report.scores.filter(({ name }) => chosenRuns().some((run) => run.further[name]));
    const usual = [...new Set(chosenStreams().map((s) => report.streams[s].metric))].join(" or ");
    const name = controls.score.update([["", usual], ...there.map((each) => [each.name, each.name])]);
    const score = there.find((each) => each.name === name) ?? null;
    const modes = [["", "scores"]];
    if (!score && chosenStreams().some((s) => hasBaseline(s))) modes.push(["gain", "gain over NFT No Comp."]);
    const mode = controls.as.update(modes);
    const groups = performanceGroups(mode, score)
      .map((group) => ({ ...group, lines: group.lines.filter((line) => line.final.n) }))
      .filter((group) => group.lines.length);
    if (!groups.length) return null;
    const width = columnsFor(panels, groups.length, 440);
    panels.append(...groups.map((group) => performancePanel(group, width)));
    const inPaper = groups.some((group) => group.lines.some((line) => known(line.paper?.mean)));
    return {
      legend: legend([
        { label: "final", className: "c6", mark: CIRCLE },
        { label: "forward", className: "c6 hollow", mark: CIRCLE },
        ...(inPaper ? [{ label: "final in the paper", className: "paper", mark: DIAMOND }] : []),
        ...(groups.some(({ majority }) => known(majority))
          ? [{ label: "most frequent class alone", className: "majority", line: true }] : []),
      ]),
      note: noteOnRuns(),
      table: {
        caption: "Mean over tasks; mean ± standard error over seeds.",
        columns: ["Stream", "Method", "Seeds", "Forward", "Final", "Paper's final", "In", "Tasks", "Majority"],
        rows: groups.flatMap(({ title, unit, digits, lines, majority }) =>
          lines.map(({ m, final, forward, paper, tasks: of }) => [
            title, labelOf(m), `${final.n}`, withError(forward, digits), withError(final, digits),
            paper ? withError(paper, digits) : "–", unit, of, format(majority, digits)])),
      },
    };
  },
});
