// Groups by what they share.

/** The order in which names are written beside marks: as far as there is room, those far from others first. */
function nameMarks(chart, points) {
  const taken = points.map(({ x, y }) => ({ x: x - 6, y: y - 6, width: 12, height: 12 }));
  const free = (box) => box.x >= chart.left - 40 && box.x + box.width <= chart.width && taken.every((other) =>
    box.x > other.x + other.width || other.x > box.x + box.width ||
    box.y > other.y + other.height || other.y > box.y + box.height);
  for (const { x, y, name } of points) {
    const text = fit(name, 110);
    const width = textWidth(text);
    const [after, before] = [{ x: x + 8, y: y - 7, width, height: 14 }, { x: x - 8 - width, y: y - 7, width, height: 14 }];
    const box = [after, before].find(free);
    if (!box) continue;
    taken.push(box);
    chart.text(box.x, y + 4, text, "tick");
  }
}

const directionName = (i) => `direction ${i + 1}`;

/** @param {MapData} map */
function drawMap(panels, map) {
  const flat = map.directions.length < 2; // all groups on a line
  const width = Math.min(columnsFor(panels, 1, 300), 760);
  const height = flat ? 120 : Math.max(280, Math.min(0.72 * width, 520));
  const chart = new Chart(`Map of ${count(map.groups.length, "group")} by what they share`,
    { width, height, left: 46, right: 16, top: 22, bottom: 40 });
  chart.xAxis(extent(map.places.map((place) => place[0])), `${directionName(0)} (${percent(map.directions[0].share)})`);
  if (flat) chart.y = scale([-1, 1], [chart.bottom, chart.top]);
  else chart.yAxis(extent(map.places.map((place) => place[1])), `${directionName(1)} (${percent(map.directions[1].share)})`);
  const gains = new Map(run.groups.map((group) => [group.name, run.metrics.length ? scoreOf(group).gain : null]));
  const points = map.groups.map((name, i) => ({
    name, x: chart.x(map.places[i][0]), y: flat ? chart.y(0) : chart.y(map.places[i][1]), near: map.near[i],
  }));
  for (const { name, x, y, near } of points) {
    const { mark, className } = gainMark(gains.get(name));
    chart.mark(x, y, mark, className);
    chart.target(x, y, `${name}; most like ${listed(near)}`);
  }
  if (!flat) nameMarks(chart, points);
  panels.append(panel("", chart.node));
  return {
    legend: gainLegend(map.groups.map((name) => gains.get(name))),
    table: {
      caption: "Where groups lie along the directions in which they differ, and which are most like each of them.",
      columns: [capital(run.group), ...map.directions.map((_, i) => capital(directionName(i))), "Most like it"],
      rows: map.groups.map((name, i) => [name, ...map.places[i].map((value) => signed(value, 2)), map.near[i].join(", ")]),
    },
  };
}

const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
