// Groups that bend along a column, each in its own way.

/** How many digits tell these values apart. */
function digitsFor(values) {
  const range = Math.max(...values) - Math.min(...values);
  return range > 0 ? Math.min(Math.max(2 - Math.floor(Math.log10(range)), 0), 9) : 3;
}

const SOME = "some";

/** The groups that are drawn: some that differ; or one, with these behind it. @param {BendData} bend */
function drawnGroups({ unlike }, chosen) {
  if (chosen === SOME) return unlike.map((g, i) => ({ g, className: `c${i}`, dash: DASHES[i], faint: false }));
  const others = unlike.filter((g) => g !== Number(chosen));
  return [...others.map((g) => ({ g, className: "c6 faint", dash: "", faint: true })),
    { g: Number(chosen), className: "c0", dash: "", faint: false }];
}

/** @param {BendData} bend */
function drawBend(panels, controls, bend) {
  const { axis, drawn: what, places, groups, curves, note } = bend;
  const drawn = drawnGroups(bend, controls.group.update([[SOME, "some that differ"], ...groups.map((name, g) => [g, name])]));
  const inFull = drawn.filter(({ faint }) => !faint);
  const values = curves.flatMap(({ lines }) => drawn.flatMap(({ g }) => lines[g]));
  const told = (place) => format(place, digitsFor(places));
  const width = Math.min(columnsFor(panels, curves.length, 300), 560);
  for (const { subject, lines } of curves) {
    const label = `${capital(what)}${subject && `=${subject}`}, along ${axis}`;
    const chart = new Chart(label, { width, height: 0.66 * width, left: 54, right: 14, top: 22, bottom: 40 });
    chart.xAxis(extent(places, { room: 0 }), axis);
    chart.yAxis(extent(values), what);
    for (const { g, className, dash } of drawn)
      chart.line(places.map((place, i) => [chart.x(place), chart.y(lines[g][i])]), className, { dash });
    for (const { g } of inFull)
      places.forEach((place, i) => chart.target(chart.x(place), chart.y(lines[g][i]),
        `${groups[g]}: ${format(lines[g][i], digitsFor(values))} at ${told(place)}`));
    panels.append(panel(subject && `${run.target}=${subject}`, chart.node));
  }
  return {
    legend: legend(inFull.map(({ g, className, dash }) => ({ label: groups[g], className, dash, line: true }))),
    note,
    table: {
      caption: `${capital(what)}, along ${axis}.`,
      columns: [capital(axis), ...curves.flatMap(({ subject }) =>
        inFull.map(({ g }) => (subject ? `${groups[g]}, ${run.target}=${subject}` : groups[g])))],
      rows: places.map((place, i) => [{ text: told(place), value: place },
        ...curves.flatMap(({ lines }) => inFull.map(({ g }) => cell(lines[g][i], digitsFor(values))))]),
    },
  };
}

function bendsSection() {
  return section("bends", "Where do groups bend?", ...run.bends.map((bend, i) => figure({
    id: `bend${i}`, title: bend.title,
    caption: `${bend.words} Here it is for a row whose other columns are at their middle: the median of numbers, the most ` +
      "frequent value of categories.",
    choosers: { group: capital(run.group) }, beside: bend.curves.length === 1,
    draw: (panels, controls) => drawBend(panels, controls, bend),
  })));
}
