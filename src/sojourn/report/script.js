// Draws every figure of the page in the page's own colours, and again when those change or the page is printed.
// The figures' data stand in the element #figures as JSON; nothing is fetched.
(function () {
  "use strict";
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const narrow = window.matchMedia("(max-width: 46rem)");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const PRINT_WIDTH = 640; // A4 or Letter between margins, in CSS pixels
  const PRINT_HEIGHT = 290; // two figures a page

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Whole labels at 1, 2 and 5 of each power of ten, or at the powers alone when there are many.
  function logTicks(data, letter) {
    const values = data.flatMap(function (line) { return Array.from(line[letter] || []); })
      .filter(function (value) { return value > 0; });
    if (!values.length) { return {}; }
    const low = Math.floor(Math.log10(Math.min(...values)));
    const high = Math.ceil(Math.log10(Math.max(...values)));
    const steps = high - low > 3 ? [1] : [1, 2, 5];
    const ticks = [];
    for (let power = low - 1; power <= high + 1; power += 1) {
      for (const step of steps) { ticks.push(Number((step * Math.pow(10, power)).toPrecision(1))); }
    }
    return { tickmode: "array", tickvals: ticks, ticktext: ticks.map(function (tick) {
      return tick.toLocaleString("en", { maximumFractionDigits: 6 });
    }) };
  }

  // How many rows a legend above the drawing takes, about: each name, and a mark before it.
  function legendRows(data, width) {
    const names = data.filter(function (line) { return line.showlegend !== false && line.visible !== false && line.name; });
    if (names.length < 2) { return 0; }
    const widest = Math.max(...names.map(function (line) { return 52 + 6.4 * line.name.length; }));
    return Math.ceil(names.length / Math.max(1, Math.floor((width - 70) / widest)));
  }
  // A long name of the upright axis in two lines, or its ends would be cut off.
  function folded(text) {
    if (text.length < 26) { return text; }
    const middle = text.length / 2;
    const blanks = Array.from(text.matchAll(/ /g), function (found) { return found.index; });
    if (!blanks.length) { return text; }
    const at = blanks.sort(function (a, b) { return Math.abs(a - middle) - Math.abs(b - middle); })[0];
    return text.slice(0, at) + "<br>" + text.slice(at + 1);
  }

  // The drawing's colours and sizes; what the figure itself says about axes and marks is kept.
  function dressed(data, layout, printing) {
    const ink = printing ? "#000" : colour("--ink");
    const soft = printing ? "#444" : colour("--soft");
    const grid = printing ? "#ddd" : colour("--grid");
    const small = narrow.matches && !printing;
    const copy = JSON.parse(JSON.stringify(layout));
    delete copy.title;
    delete copy.template;
    copy.paper_bgcolor = "rgba(0,0,0,0)";
    copy.plot_bgcolor = "rgba(0,0,0,0)";
    copy.font = { family: getComputedStyle(document.body).fontFamily, size: small ? 11 : 12.5, color: ink };
    copy.margin = small ? { l: 8, r: 8, t: 18, b: 8 } : { l: 8, r: 14, t: 20, b: 8 };
    copy.legend = { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: small ? 11 : 12 } };
    copy.hoverlabel = { bgcolor: printing ? "#fff" : colour("--card"), font: { color: ink } };
    copy.autosize = !printing;
    if (printing) { copy.width = PRINT_WIDTH; copy.height = PRINT_HEIGHT + 16 * Math.max(0, legendRows(data, PRINT_WIDTH) - 1); }
    for (const axis of ["xaxis", "yaxis"]) {
      const given = copy[axis] || {};
      const text = given.title && (given.title.text || given.title);
      copy[axis] = Object.assign({}, given, {
        title: { text: axis === "yaxis" ? folded(text || "") : text || "", font: { size: small ? 11 : 12, color: soft }, standoff: 8 },
        gridcolor: grid, linecolor: soft, tickcolor: soft, zeroline: false, showline: axis === "xaxis",
        ticks: axis === "xaxis" ? "outside" : "", automargin: true, separatethousands: true,
      });
      if (given.type === "log") { Object.assign(copy[axis], logTicks(data, axis[0])); }
    }
    // What the paper states is drawn in a colour of its own, its label turned to where there is room.
    const mark = printing ? "#333" : colour("--accent");
    const xs = data.flatMap(function (line) { return Array.from(line.x || []); });
    const middle = (Math.min(...xs) + Math.max(...xs)) / 2;
    for (const shape of copy.shapes || []) { shape.line = Object.assign({}, shape.line, { color: mark, width: 1.3 }); }
    for (const note of copy.annotations || []) {
      note.font = { size: small ? 10.5 : 11.5, color: mark };
      if (note.yref === "y domain") { note.xanchor = note.x > middle ? "right" : "left"; }
    }
    return copy;
  }

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : dark.matches;
  }

  // Line colours are chosen for paper; on a dark page they are mixed with a third of white.
  function lines(data, printing) {
    if (printing || !isDark()) { return data; }
    return data.map(function (line) {
      const given = line.line && line.line.color;
      if (!/^#[0-9a-f]{6}$/i.test(given || "")) { return line; }
      const mixed = "#" + [1, 3, 5].map(function (at) {
        const part = parseInt(given.slice(at, at + 2), 16);
        return Math.round(part + (255 - part) * 0.33).toString(16).padStart(2, "0");
      }).join("");
      return Object.assign({}, line, { line: Object.assign({}, line.line, { color: mixed }) });
    });
  }

  function draw(printing) {
    for (const [id, figure] of Object.entries(figures)) {
      const place = document.getElementById(id);
      // Legends of several rows take no room from the drawing: the place for both grows.
      const more = 18 * Math.max(0, legendRows(figure.data, place.clientWidth) - 1);
      place.style.height = printing || !more ? "" : "calc(var(--plot) + " + more + "px)";
      Plotly.react(place, lines(figure.data, printing), dressed(figure.data, figure.layout || {}, printing),
        { responsive: !printing, displaylogo: false, displayModeBar: false })
        .then(function () { place.dataset.drawn = "yes"; });
    }
  }

  const button = document.querySelector(".theme");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      draw(false);
    });
  }
  dark.addEventListener("change", function () { draw(false); });
  narrow.addEventListener("change", function () { draw(false); });
  window.addEventListener("beforeprint", function () { draw(true); });
  window.addEventListener("afterprint", function () { draw(false); });
  draw(false);
})();
