// Lines over time with both axes: clock times below, round values at the side. Pointing at a chart, or the arrow
// keys while it has the focus, read the values of one moment.
import { bytes, byId, clock, count, drawn, element, millis } from "./words.js";

const LEFT = 66, RIGHT = 8, TOP = 8, BOTTOM = 20;
const CHARTS = [
  { id: "rate", columns: [[1, "published"], [2, "delivered"]], unit: function (value) { return count(value) + " /s"; } },
  { id: "move", columns: [[3, "hand-offs"]], unit: function (value) { return count(value) + " /s"; } },
  { id: "took", columns: [[6, "50%"], [7, "99%"]], unit: millis },
  { id: "wait", columns: [[4, "waiting"]], unit: bytes, isBytes: true },
];

// Round values from nothing to the peak: at most four steps of 1, 2 or 5 times a power of ten, or of two for bytes.
export function ticks(peak, isBytes) {
  if (!(peak > 0)) { return [0, 1]; }
  let step;
  if (isBytes) {
    step = 1;
    while (peak / step > 4) { step *= 2; }
  } else {
    step = Math.pow(10, Math.floor(Math.log10(peak / 4)));
    const more = [1, 2, 5, 10].find(function (times) { return peak / (step * times) <= 4; });
    step *= more;
  }
  const found = [];
  for (let number = 0; number * step < peak + step * 0.999; number += 1) { found.push(number * step); }
  return found;
}
// Clock times that stand clear of one another: at least two, for spans of three minutes and of an hour.
export function timeTicks(from, to, width) {
  const steps = [10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800];
  const step = steps.find(function (one) { return width * one / (to - from) >= (one % 60 ? 70 : 52); }) || 1800;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) { found.push(at); }
  return found.map(function (at) { return [at, clock(at, step % 60 !== 0)]; });
}

function draw(chart, rows, span) {
  const svg = byId("chart-" + chart.id);
  const width = Math.max(160, svg.clientWidth), height = Math.max(90, svg.clientHeight);
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  const to = rows.length ? rows[rows.length - 1][0] : Date.now() / 1000, from = to - span;
  const shown = rows.filter(function (row) { return row[0] >= from; });
  const peak = Math.max(0, ...shown.flatMap(function (row) {
    return chart.columns.map(function (column) { return row[column[0]] || 0; });
  }));
  const steps = ticks(peak, chart.isBytes), top = steps[steps.length - 1];
  const x = function (at) { return LEFT + (width - LEFT - RIGHT) * (at - from) / span; };
  const y = function (value) { return height - BOTTOM - (height - TOP - BOTTOM) * value / top; };
  const parts = [];
  for (const value of steps) {
    parts.push(drawn("line", { class: value ? "grid" : "base", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }));
    const text = drawn("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" });
    text.textContent = value ? chart.unit(value).replace(" /s", "") : "0";
    parts.push(text);
  }
  for (const tick of timeTicks(from, to, width - LEFT - RIGHT)) {
    const at = x(tick[0]);
    parts.push(drawn("line", { class: "base", x1: at, x2: at, y1: height - BOTTOM, y2: height - BOTTOM + 4 }));
    const text = drawn("text", { class: "tick", x: Math.min(at, width - 22), y: height - 4, "text-anchor": "middle" });
    text.textContent = tick[1];
    parts.push(text);
  }
  chart.columns.forEach(function (column, number) {
    // A gap in what is known is a gap in the line.
    let part = [];
    const end = function () {
      if (part.length) { parts.push(drawn("polyline", { class: number ? "other" : "one", points: part.join(" ") })); }
      part = [];
    };
    shown.forEach(function (row) {
      const value = row[column[0]];
      if (value === null || value === undefined) { end(); } else { part.push(x(row[0]).toFixed(1) + "," + y(value).toFixed(1)); }
    });
    end();
  });
  chart.shown = shown; chart.x = x; chart.size = [width, height];
  chart.cursor = drawn("line", { class: "cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
  parts.push(chart.cursor);
  svg.replaceChildren(...parts);
  if (chart.read !== null && chart.read !== undefined && shown.length) { point(chart, Math.min(chart.read, shown.length - 1)); } else { legend(chart, shown[shown.length - 1], false); }
}

// What the lines are, and their values now or at the moment pointed at.
function legend(chart, row, isPast) {
  const at = byId("now-" + chart.id);
  const parts = [];
  if (isPast) { parts.push(element("span", clock(row[0]), "when"), " "); }
  chart.columns.forEach(function (column, number) {
    const value = row ? row[column[0]] : null;
    const text = value === null || value === undefined ? "–" : chart.unit(value);
    parts.push(element("span", (chart.columns.length > 1 ? column[1] + " " : "") + text, number ? "other-name" : "one-name"), " ");
  });
  at.replaceChildren(...parts);
}
function point(chart, place) {
  chart.read = place;
  const row = chart.shown[place];
  if (!row) { return; }
  const at = chart.x(row[0]);
  chart.cursor.setAttribute("x1", at); chart.cursor.setAttribute("x2", at);
  chart.cursor.setAttribute("visibility", "visible");
  legend(chart, row, true);
}
function leave(chart) {
  chart.read = null;
  chart.cursor.setAttribute("visibility", "hidden");
  legend(chart, chart.shown[chart.shown.length - 1], false);
}

export class Charts {
  constructor() {
    this.rows = [];
    this.span = 180;
    for (const chart of CHARTS) {
      const svg = byId("chart-" + chart.id);
      svg.addEventListener("pointermove", function (event) {
        if (!chart.shown || !chart.shown.length) { return; }
        const at = event.clientX - svg.getBoundingClientRect().left;
        let best = 0;
        chart.shown.forEach(function (row, place) {
          if (Math.abs(chart.x(row[0]) - at) < Math.abs(chart.x(chart.shown[best][0]) - at)) { best = place; }
        });
        point(chart, best);
      });
      for (const kind of ["pointerleave", "blur"]) { svg.addEventListener(kind, function () { if (chart.shown) { leave(chart); } }); }
      svg.addEventListener("keydown", function (event) {
        const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
        if (!by || !chart.shown || !chart.shown.length) { return; }
        event.preventDefault();
        const from = chart.read === null || chart.read === undefined ? chart.shown.length : chart.read;
        point(chart, Math.max(0, Math.min(chart.shown.length - 1, from + by)));
      });
    }
  }
  show(rows, span) {
    this.rows = rows;
    this.span = span;
    for (const chart of CHARTS) { draw(chart, rows, span); }
  }
  again() { this.show(this.rows, this.span); }
}
