// Groups by what they share.

const [LINES, LINE] = [40, 20]; // groups that have a line of their own, and its height
const HIDDEN_NAMES = "Names that find no room appear at the pointer, and by arrow keys.";

/** Writes names beside marks, in this order, as far as there is room. */
function nameMarks(chart, points) {
  const taken = points.map(({ x, y }) => ({ x: x - 6, y: y - 6, width: 12, height: 12 }));
  const free = (box) => box.x >= chart.left && box.x + box.width <= chart.width && box.y + box.height <= chart.bottom && taken.every((other) =>
    box.x > other.x + other.width || other.x > box.x + box.width ||
    box.y > other.y + other.height || other.y > box.y + box.height);
  for (const { x, y, name } of points) {
    const text = fit(name, 110);
    const width = textWidth(text);
    const places = [[x + 8, y - 7], [x - 8 - width, y - 7], [x - width / 2, y + 7], [x - width / 2, y - 21]];
    const box = places.map(([left, top]) => ({ x: left, y: top, width, height: 14 })).find(free);
    if (!box) continue;
    taken.push(box);
    chart.text(box.x, box.y + 11, text, "tick beside");
  }
}

const directionName = (i) => `direction ${i + 1}`;

const axisName = (map, i) => `${directionName(i)} (${percent(map.directions[i].share)})`;

/** Groups in the plane; or, if there is one direction only, below each other. @param {MapData} map */
function mapChart(map, width) {
  const flat = map.directions.length < 2;
  const label = `Map of ${count(map.groups.length, "group")} by what they share`;
  const xs = map.places.map((place) => place[0]);
  if (!flat) {
    const height = Math.max(280, Math.min(0.72 * width, 520));
    const chart = new Chart(label, { width, height, left: 46, right: 16, top: 22, bottom: 40 });
    chart.xAxis(extent(xs), axisName(map, 0));
    chart.yAxis(extent(map.places.map((place) => place[1])), axisName(map, 1));
    return { chart, height: (i) => chart.y(map.places[i][1]), named: true };
  }
  const few = map.groups.length <= LINES; // else on one line, without names
  const left = few ? Math.min(widest(map.groups) + 14, 0.36 * width) : 16;
  const size = few ? LINE * map.groups.length : 60;
  const chart = new Chart(label, { width, height: size + 48, left, right: 16, top: 8, bottom: 40 });
  chart.xAxis(extent(xs), axisName(map, 0));
  const order = [...xs.keys()].sort((a, b) => xs[a] - xs[b]);
  const height = (i) => (few ? chart.top + LINE * (order.indexOf(i) + 0.5) : chart.top + size / 2);
  if (few) order.forEach((i) => chart.text(left - 8, height(i) + 4, map.groups[i], "tick end", left - 10));
  return { chart, height, named: false };
}

/** @param {MapData} map */
function drawMap(panels, map) {
  const { chart, height, named } = mapChart(map, Math.min(columnsFor(panels, 1, 300), 760));
  const gains = new Map(run.groups.map((group) => [group.name, run.metrics.length ? scoreOf(group).gain : null]));
  const points = map.groups.map((name, i) => ({ name, x: chart.x(map.places[i][0]), y: height(i), near: map.near[i] }));
  for (const { name, x, y, near } of points) {
    const { mark, className } = gainMark(gains.get(name));
    chart.mark(x, y, mark, className);
    chart.target(x, y, `${name}; most like ${listed(near)}`);
  }
  if (named) nameMarks(chart, points);
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
