// Which parts helped: methods that differ from a reference in one part.

/** What it costs beside the reference, as far as it is known. @param {VariationData} line */
function costsOf({ components, parameters, time }) {
  const parts = [[components, "components"], [parameters, "parameters"], [time, "time"]]
    .flatMap(([times, what]) => (known(times) ? [`${what} × ${format(times, 2)}`] : []));
  return parts.length ? `\n${parts.join(", ")}` : "";
}

/** @param {{ s: number, lines: VariationData[] }} group */
function variationPanel({ s, lines }, width) {
  const digits = digitsOf(s);
  const reference = labelOf(lines[0].reference);
  const narrow = width < 560;
  const nameOf = ({ part: what, usual, other }) => `${what}: ${other} instead of ${usual}`;
  const left = narrow ? 8 : Math.min(widest(lines.map(nameOf)), 0.45 * width) + 12;
  const row = narrow ? 44 : 26;
  const chart = new Chart(
    `${streamName(s)}: ${count(lines.length, "method")} that ${lines.length === 1 ? "differs" : "differ"} in one part ` +
      `from ${reference}, and how much better or worse they are.`,
    { width, height: row * lines.length + 52, left, right: 16, top: 8, bottom: 44 });
  const unit = report.streams[s].metric === "accuracy" ? "points" : unitOf(s);
  chart.xAxis(extent([0, ...lines.flatMap(({ low, high }) => [low, high])]), `better than the reference by, ${unit}`);
  chart.add("line", { class: "zero", x1: chart.x(0), x2: chart.x(0), y1: chart.top, y2: chart.bottom });
  lines.forEach((line, i) => {
    const y = chart.top + i * row + (narrow ? 30 : 13);
    if (narrow) chart.nameAbove(y - 30, nameOf(line));
    else chart.text(left - 8, y + 4, nameOf(line), "name end", left - 8);
    const [low, high, x] = [line.low, line.high, line.difference].map(chart.x);
    chart.add("path", { class: "whisker", d: `M${low} ${y}H${high}M${low} ${y - 3}v6M${high} ${y - 3}v6` });
    chart.mark(x, y, CIRCLE, `${methodClass(line.method)}${line.significant ? "" : " hollow"}`, 1.1);
    chart.target(x, y, `${nameOf(line)}\n${format(line.difference, digits)}, 95 % interval ` +
      `${format(line.low, digits)} to ${format(line.high, digits)}\np = ${format(line.p, 4)}, ${count(line.seeds, "seed")}${costsOf(line)}`);
  });
  return panel(`${streamName(s)}, beside ${reference}`, chart.node);
}

const variationFigure = figure({
  id: "variations",
  when: report.variations.length > 0,
  title: "One part at a time",
  caption: "Final performance of methods that differ from a reference in one part, minus the reference's, on the same " +
    "seeds: left of the line, the part of the reference helped. Bars: intervals of 95\u00a0%, each for itself. Filled: " +
    "significant at 5\u00a0% after correction for all of them (paired t-test, Holm). At the pointer and in the numbers " +
    "below: how many times as many components and parameters, and as much time, as the reference.",
  draw(panels) {
    const groups = chosenStreams().map((s) => ({
      s,
      lines: report.variations.filter(({ stream, method, reference }) =>
        stream === s && chosen.methods.has(method) && chosen.methods.has(reference))
        .sort((a, b) => a.difference - b.difference),
    })).filter(({ lines }) => lines.length);
    if (!groups.length) return null;
    const width = columnsFor(panels, groups.length, 480);
    panels.append(...groups.map((group) => variationPanel(group, width)));
    return {
      legend: legend([
        { label: "significant", className: "c6", mark: CIRCLE },
        { label: "not significant", className: "c6 hollow", mark: CIRCLE },
      ]),
      table: {
        caption: "Difference to the reference; above 0: better than it.",
        columns: ["Stream", "Reference", "Part", "Instead of", "Has", "Seeds", "Difference", "From", "To", "p",
          "× components", "× parameters", "× time"],
        rows: groups.flatMap(({ s, lines }) => lines.map((line) => [
          streamName(s), labelOf(line.reference), line.part, line.usual, line.other, `${line.seeds}`,
          ...[line.difference, line.low, line.high].map((value) => format(value, digitsOf(s))), format(line.p, 4),
          ...[line.components, line.parameters, line.time].map((times) => format(times, 2))])),
      },
    };
  },
});
