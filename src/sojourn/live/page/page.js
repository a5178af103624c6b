// Shows what the broker tells every second: /stream brings the whole state, each part below draws its share.
// Nothing is remembered here but where dots are; a page opened late shows the same as one that was left open.
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const NODE_R = 24; // radius of a broker, in pixels
  const MOVED_MS = 2500; // how long a client that moved is marked
  const AWAY_MS = 60000; // how long a client that has gone is remembered
  const MOVES_SHOWN = 10;
  const STALLED_MS = 4000;
  const DOWN_S = 3; // a link that is down for longer is amiss, not merely being made again
  const byId = function (id) { return document.getElementById(id); };

  // Words and numbers ------------------------------------------------------------------------------------

  function count(value) {
    return value.toLocaleString("en", { maximumFractionDigits: value < 10 && value % 1 ? 1 : 0 });
  }
  function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB"];
    let unit = 0;
    while (value >= 1024 && unit < 3) { value /= 1024; unit += 1; }
    return (unit && value < 100 ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
  }
  function millis(seconds) {
    if (seconds === null || seconds === undefined) { return "-"; }
    const ms = seconds * 1000;
    if (ms < 0.1) { return "< 0.1 ms"; }
    if (ms >= 1000) { return seconds.toFixed(1) + " s"; }
    return (ms < 10 ? ms.toFixed(1) : Math.round(ms)) + " ms";
  }
  function age(seconds) {
    if (seconds < 120) { return Math.round(seconds) + " s"; }
    return seconds < 7200 ? Math.round(seconds / 60) + " min" : Math.round(seconds / 3600) + " h";
  }
  function many(number, one, more) { return count(number) + " " + (number === 1 ? one : more || one + "s"); }
  function write(id, text) { const at = byId(id); if (at.textContent !== text) { at.textContent = text; } }
  function rate(id, value) {
    const at = byId(id);
    const small = document.createElement("small");
    small.textContent = " /s";
    at.replaceChildren(count(value), small);
  }
  function element(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) { made.textContent = text; }
    if (kind) { made.className = kind; }
    return made;
  }
  function drawn(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const key of Object.keys(attributes)) { made.setAttribute(key, attributes[key]); }
    if (parent) { parent.appendChild(made); }
    return made;
  }
  function total(reports, field) { return reports.reduce(function (sum, one) { return sum + one[field]; }, 0); }

  // Reasons of all brokers: [[reason, count, brokers], ...], the most frequent first.
  function reasons(brokers, field) {
    const found = new Map();
    for (const broker of brokers) {
      for (const reason of Object.keys(broker.report[field])) {
        const row = found.get(reason) || [reason.replaceAll("_", " "), 0, []];
        row[1] += broker.report[field][reason];
        row[2].push(broker.name);
        found.set(reason, row);
      }
    }
    return Array.from(found.values()).sort(function (a, b) { return b[1] - a[1]; });
  }

  // The map ----------------------------------------------------------------------------------------------

  let places = new Map(); // broker -> place between 0 and 1 in both directions
  let shape = ""; // which brokers and links the places are of
  let picture = ""; // where brokers were drawn last
  const nodes = new Map(), lines = new Map(), dots = new Map(), slots = new Map();

  // Brokers that are linked draw together, all push apart: the same places for the same network every time.
  function arrange(names, links) {
    const at = names.map(function (_, number) {
      const turn = 2 * Math.PI * number / names.length;
      return [Math.cos(turn), Math.sin(turn) * 0.8];
    });
    const index = new Map(names.map(function (name, number) { return [name, number]; }));
    const ideal = 1.2 / Math.sqrt(names.length);
    for (let round = 0, heat = 0.2; round < 300; round += 1, heat *= 0.985) {
      const push = at.map(function () { return [0, 0]; });
      const act = function (a, b, force) {
        const dx = at[a][0] - at[b][0], dy = at[a][1] - at[b][1], far = Math.hypot(dx, dy) || 1e-3;
        const by = force(far) / far;
        push[a][0] += dx * by; push[a][1] += dy * by; push[b][0] -= dx * by; push[b][1] -= dy * by;
      };
      for (let a = 0; a < at.length; a += 1) {
        for (let b = 0; b < a; b += 1) { act(a, b, function (far) { return ideal * ideal / far; }); }
      }
      for (const link of links) {
        act(index.get(link[0]), index.get(link[1]), function (far) { return -far * far / ideal; });
      }
      at.forEach(function (place, number) {
        const far = Math.hypot(push[number][0], push[number][1]) || 1e-9, step = Math.min(far, heat) / far;
        place[0] += push[number][0] * step; place[1] += push[number][1] * step;
      });
    }
    return new Map(names.map(function (name, number) { return [name, at[number]]; }));
  }

  // Turn the picture so that its longer side lies along the window's, and stretch it to the edges.
  function fitted(width, height) {
    const list = Array.from(places.values());
    const mean = [0, 1].map(function (axis) {
      return list.reduce(function (sum, place) { return sum + place[axis]; }, 0) / list.length;
    });
    let xx = 0, xy = 0, yy = 0;
    for (const place of list) {
      const x = place[0] - mean[0], y = place[1] - mean[1];
      xx += x * x; xy += x * y; yy += y * y;
    }
    const turn = 0.5 * Math.atan2(2 * xy, xx - yy) - (height > width ? Math.PI / 2 : 0);
    const turned = new Map(Array.from(places, function (entry) {
      const x = entry[1][0] - mean[0], y = entry[1][1] - mean[1];
      return [entry[0], [x * Math.cos(turn) + y * Math.sin(turn), y * Math.cos(turn) - x * Math.sin(turn)]];
    }));
    const margin = Math.min(76, width / 5, height / 5);
    const spread = function (axis, from, to) {
      const values = Array.from(turned.values(), function (place) { return place[axis]; });
      const low = Math.min(...values), high = Math.max(...values);
      return function (value) {
        return high - low < 1e-6 ? (from + to) / 2 : from + (to - from) * (value - low) / (high - low);
      };
    };
    const across = spread(0, margin, width - margin), along = spread(1, margin, height - margin);
    return new Map(Array.from(turned, function (entry) {
      return [entry[0], [across(entry[1][0]), along(entry[1][1])]];
    }));
  }

  // The place of the n-th client around its broker: a sunflower.
  function around(centre, slot, spacing) {
    const far = Math.sqrt((NODE_R + 8) * (NODE_R + 8) + spacing * spacing * slot / 2.6), turn = slot * 2.39996;
    return [centre[0] + far * Math.cos(turn), centre[1] + far * Math.sin(turn)];
  }
  function takeSlot(broker) {
    const taken = slots.get(broker) || slots.set(broker, new Set()).get(broker);
    let slot = 0;
    while (taken.has(slot)) { slot += 1; }
    taken.add(slot);
    return slot;
  }
  function leaveSlot(dot) { if (slots.has(dot.broker)) { slots.get(dot.broker).delete(dot.slot); } }

  function showMap(state) {
    const names = state.brokers.map(function (broker) { return broker.name; });
    const wanted = JSON.stringify([names, state.links]);
    if (wanted !== shape) {
      shape = wanted;
      places = arrange(names, state.links);
      for (const old of [nodes, lines]) { old.forEach(function (one) { one.remove(); }); old.clear(); }
    }
    const box = byId("map").getBoundingClientRect();
    const at = fitted(Math.max(200, box.width), Math.max(200, box.height));
    const reports = new Map(state.brokers.map(function (broker) {
      return [broker.name, broker.state === "up" ? broker.report : null];
    }));
    for (const link of state.links) { showLink(link, at, reports); }
    for (const broker of state.brokers) { showNode(broker, at.get(broker.name)); }
    // Only clients travel: when the picture itself changes, the dots are where their brokers are, at once.
    const drawing = JSON.stringify(Array.from(at.values()));
    const group = byId("dots");
    group.classList.toggle("still", drawing !== picture);
    showDots(state, at);
    if (drawing !== picture) { void group.getBoundingClientRect(); group.classList.remove("still"); }
    picture = drawing;
  }

  function showLink(link, at, reports) {
    const key = link[0] + " " + link[1];
    let group = lines.get(key);
    if (!group) {
      group = drawn("g", {}, byId("links"));
      drawn("line", {}, group);
      drawn("text", { class: "queue" }, group);
      lines.set(key, group);
    }
    const one = reports.get(link[0]), other = reports.get(link[1]);
    const ends = [one && one.links[link[1]], other && other.links[link[0]]];
    const isUp = one && other && ends.every(function (end) { return end && end.up; });
    const from = at.get(link[0]), to = at.get(link[1]);
    const line = group.firstChild, text = group.lastChild;
    const downFor = Math.max(0, ...ends.map(function (end) { return end ? end.down_s || 0 : 0; }));
    const isAmiss = !isUp && (downFor > DOWN_S || !one || !other);
    line.setAttribute("class", "link " + (!link[2] ? "spare" : isUp ? "up" : isAmiss ? "down" : "coming"));
    line.setAttribute("x1", from[0]); line.setAttribute("y1", from[1]);
    line.setAttribute("x2", to[0]); line.setAttribute("y2", to[1]);
    const queued = ends.reduce(function (sum, end) { return sum + (end ? end.queue_bytes : 0); }, 0);
    const words = [];
    if (link[2] && isAmiss && downFor) { words.push("down for " + age(downFor)); }
    if (queued > 65536 || (link[2] && isAmiss && queued)) { words.push(bytes(queued) + " waiting"); }
    text.textContent = words.join(", ");
    text.setAttribute("class", link[2] && isAmiss ? "queue amiss" : "queue");
    text.setAttribute("x", (from[0] + to[0]) / 2); text.setAttribute("y", (from[1] + to[1]) / 2 - 5);
  }

  function showNode(broker, at) {
    let group = nodes.get(broker.name);
    if (!group) {
      group = drawn("g", {}, byId("nodes"));
      drawn("title", {}, group);
      drawn("circle", { r: NODE_R }, group);
      drawn("text", { y: -1 }, group).textContent = broker.name.length > 6 ? broker.name.slice(0, 5) + "…" : broker.name;
      drawn("text", { class: "count", y: 13 }, group);
      nodes.set(broker.name, group);
    }
    const report = broker.report;
    const isRefusing = broker.state === "up" && report.refusing;
    group.setAttribute("class", "node " + (isRefusing ? "refusing" : broker.state));
    group.setAttribute("transform", "translate(" + at[0] + " " + at[1] + ")");
    group.firstChild.textContent = broker.name + ", " + broker.listen + ": " + standing(broker);
    group.lastChild.textContent = broker.state === "up" ? count(report.clients) : "?";
  }

  function standing(broker) {
    if (broker.state === "unknown") { return "not heard of yet"; }
    if (broker.state === "silent") { return "silent for " + count(Math.round(broker.silent_s)) + " s"; }
    return broker.report.refusing ? "refusing" : "up";
  }

  function showDots(state, at) {
    const here = new Map();
    let most = 0, isCut = false;
    for (const broker of state.brokers) {
      if (broker.state !== "up") { continue; }
      most = Math.max(most, broker.report.present.length);
      isCut = isCut || broker.report.clients > broker.report.present.length;
      for (const client of broker.report.present) {
        const known = here.get(client[0]);
        if (!known || known[1] <= client[1]) { here.set(client[0], [broker.name, client[1]]); }
      }
    }
    const spacing = most > 120 ? 7.5 : most > 60 ? 9 : 10.5, now = Date.now();
    here.forEach(function (where, client) {
      const dot = dots.get(client);
      if (!dot) {
        const circle = drawn("circle", { class: "dot", r: 3.5 }, byId("dots"));
        drawn("title", {}, circle).textContent = client;
        dots.set(client, { circle: circle, broker: where[0], slot: takeSlot(where[0]), movedAt: 0, goneAt: 0 });
      } else {
        dot.goneAt = 0;
        if (dot.broker !== where[0]) {
          leaveSlot(dot);
          dot.broker = where[0]; dot.slot = takeSlot(where[0]); dot.movedAt = now;
        }
      }
    });
    dots.forEach(function (dot, client) {
      if (!here.has(client)) {
        dot.goneAt = dot.goneAt || now;
        if (isCut || now - dot.goneAt > AWAY_MS || !at.has(dot.broker)) {
          leaveSlot(dot); dot.circle.remove(); dots.delete(client);
          return;
        }
      }
      const place = around(at.get(dot.broker), dot.slot, spacing);
      const hasMoved = now - dot.movedAt < MOVED_MS;
      dot.circle.style.transform = "translate(" + place[0].toFixed(1) + "px," + place[1].toFixed(1) + "px)";
      dot.circle.setAttribute("class", "dot" + (dot.goneAt ? " away" : hasMoved ? " moving" : ""));
      dot.circle.setAttribute("r", hasMoved && !dot.goneAt ? 4.5 : spacing < 9 ? 2.8 : 3.5);
    });
  }

  // Numbers, lists, charts -------------------------------------------------------------------------------

  function showTiles(state, fresh, reports) {
    // What has been counted stays counted when its broker falls silent.
    const known = state.brokers.filter(function (broker) { return broker.report; });
    const sums = known.map(function (broker) { return broker.report; });
    const clients = total(reports, "clients"), away = total(reports, "sessions") - clients;
    write("clients", count(clients));
    write("sessions", away > 0 ? count(away) + " away" : "nobody away");
    rate("published", total(reports, "published_rate"));
    write("published-all", count(total(sums, "published")) + " in all");
    rate("delivered", total(reports, "delivered_rate"));
    write("delivered-all", count(total(sums, "delivered")) + " in all");
    rate("handoffs", total(reports, "handoff_rate"));
    write("handoffs-all", count(total(sums, "handoffs")) + " in all");
    write("p50", millis(state.latency.p50_s));
    write("p99", state.latency.count ? "99%: " + millis(state.latency.p99_s) : "none in the last minute");
    const queue = total(reports, "queue_bytes");
    write("queue", bytes(queue));
    const fullest = fresh.slice().sort(function (a, b) { return b.report.queue_bytes - a.report.queue_bytes; })[0];
    write("queue-where", queue ? "most at " + fullest.name : "for clients");
    for (const kind of [["lost", "dropped"], ["refused", "refused"]]) {
      const rows = reasons(known, kind[1]);
      const sum = rows.reduce(function (all, row) { return all + row[1]; }, 0);
      write(kind[0], count(sum));
      write(kind[0] + "-why", rows.length ? "mostly " + rows[0][0] : "nothing");
      byId(kind[0] + "-tile").classList.toggle("amiss", sum > 0);
      const list = byId(kind[0] + "-list");
      list.replaceChildren(...(rows.length ? rows.flatMap(reasonRow) : [element("dt", "Nothing.", "none")]));
    }
    const made = mended(known);
    byId("mended-list").replaceChildren(
      ...(made.length ? made.flatMap(reasonRow) : [element("dt", "Nothing.", "none")]));
  }
  // What went amiss between brokers and was made good: [[what, count, brokers], ...].
  function mended(brokers) {
    const sums = {
      "links told all anew": function (report) {
        return Object.values(report.links).reduce(function (sum, link) { return sum + (link.resets || 0); }, 0);
      },
      "events sent again by a neighbour": function (report) { return report.repeated || 0; },
      "SUBACKs not confirmed by all": function (report) { return report.unconfirmed || 0; },
    };
    return Object.keys(sums).map(function (what) {
      const where = brokers.filter(function (broker) { return sums[what](broker.report); });
      const sum = where.reduce(function (all, broker) { return all + sums[what](broker.report); }, 0);
      return [what, sum, where.map(function (broker) { return broker.name; })];
    }).filter(function (row) { return row[1]; });
  }
  function reasonRow(row) {
    const term = element("dt", row[0] + " ");
    term.appendChild(element("small", row[2].join(", ")));
    return [term, element("dd", count(row[1]))];
  }

  function showMoves(moves) {
    const list = byId("moves");
    if (!moves.length) { list.replaceChildren(element("li", "Nobody has moved yet.", "none")); return; }
    list.replaceChildren(...moves.slice(-MOVES_SHOWN).reverse().map(function (move) {
      const row = element("li");
      const how = move.complete ? move.how : "incomplete";
      row.append(element("span", move.client), element("span", move.origin + " → " + move.broker),
        element("span", millis(move.took_s)), element("span", how, move.complete ? "" : "incomplete"));
      row.title = move.complete ? "" : "Some of what waited elsewhere was lost.";
      return row;
    }));
  }

  // A line for each of some columns of the history, on one scale that begins at nothing.
  function chart(id, history, columns) {
    const svg = byId(id);
    svg.setAttribute("viewBox", "0 0 180 100");
    svg.setAttribute("preserveAspectRatio", "none");
    const peak = Math.max(1e-9, ...history.flatMap(function (row) {
      return columns.map(function (column) { return row[column[0]] || 0; });
    }));
    const parts = [drawn("line", { class: "base", x1: 0, x2: 180, y1: 99, y2: 99 })];
    for (const column of columns) {
      const points = history.map(function (row, number) {
        const value = row[column[0]];
        return value === null ? null : (180 - history.length + number) + "," + (99 - 94 * value / peak).toFixed(2);
      }).filter(Boolean);
      parts.push(drawn("polyline", { class: column[1], points: points.join(" ") }));
    }
    svg.replaceChildren(...parts);
    return peak;
  }
  function legend(id, names, peak) {
    const at = byId(id);
    at.replaceChildren();
    names.forEach(function (name, number) {
      at.append(element("span", name, number ? "other-name" : "one-name"), " ");
    });
    at.append("up to " + peak);
  }
  function showCharts(history) {
    const some = history.length > 1;
    const events = chart("chart-rate", history, [[1, "one"], [2, "other"]]);
    legend("rate-now", ["published", "delivered"], some ? count(events) : "-");
    const moved = chart("chart-move", history, [[3, "one"]]);
    legend("move-now", [], some ? count(moved) : "-");
    const took = chart("chart-took", history, [[6, "one"], [7, "other"]]);
    legend("took-now", ["50%", "99%"], took > 1e-8 ? millis(took) : "-");
    const waiting = chart("chart-wait", history, [[4, "one"]]);
    legend("wait-now", [], some ? bytes(waiting < 1 ? 0 : waiting) : "-");
  }

  function showTable(state) {
    byId("brokers").tBodies[0].replaceChildren(...state.brokers.map(function (broker) {
      const row = element("tr"), report = broker.report;
      const name = element("td", broker.name + " ");
      name.appendChild(element("small", broker.listen));
      const isRefusing = broker.state === "up" && report.refusing;
      const badge = element("span", standing(broker), "state " + (isRefusing ? "refusing" : broker.state));
      badge.title = isRefusing ? report.refusing : "";
      const stateCell = element("td");
      stateCell.appendChild(badge);
      row.append(name, stateCell);
      if (broker.state !== "up") {
        for (let cell = 0; cell < 10; cell += 1) { row.append(element("td", "-", "none")); }
        return row;
      }
      const sum = function (table) {
        return Object.values(table).reduce(function (all, one) { return all + one; }, 0);
      };
      for (const text of [count(report.clients), count(report.sessions), count(report.published_rate),
        count(report.delivered_rate), bytes(report.queue_bytes), count(report.handoffs),
        count(sum(report.dropped)), count(sum(report.refused)),
        report.store === "none" ? "in memory" : bytes(report.store_bytes) + (report.store === "ok" ? "" : " full")]) {
        row.append(element("td", text));
      }
      const links = element("td");
      for (const peer of Object.keys(report.links).sort()) {
        const link = report.links[peer];
        const isAmiss = !link.up && link.down_s > DOWN_S;
        links.append(element("span", link.up ? peer : peer + " down " + age(link.down_s || 0), isAmiss ? "down" : ""));
        links.append(link.queue_bytes > 65536 || (isAmiss && link.queue_bytes) ? " (" + bytes(link.queue_bytes) + ") " : " ");
      }
      row.append(links);
      return row;
    }));
  }

  function show(state) {
    const fresh = state.brokers.filter(function (broker) { return broker.state === "up"; });
    const reports = fresh.map(function (broker) { return broker.report; });
    const missing = state.brokers.length - fresh.length;
    write("title", many(state.brokers.length, "broker") + ", " + many(total(reports, "clients"), "client") +
      (missing ? "; " + many(missing, "broker") + " not heard of" : ""));
    const scheme = { proactive: "pro-active hand-off", reactive: "reactive hand-off", durable: "durable subscriptions" };
    write("lede", scheme[state.scheme] + ", " + state.routing + " routing, seen from " + state.broker +
      "; release " + state.version);
    showTiles(state, fresh, reports);
    showMap(state);
    showMoves(state.moves);
    showCharts(state.history);
    showTable(state);
    document.documentElement.dataset.live = "yes";
  }

  // The stream -------------------------------------------------------------------------------------------

  let last = null, lastAt = 0, past = [];
  fetch("history").then(function (answer) { return answer.json(); }).then(function (found) { past = found.minutes; });
  function pulse(text, kind) { write("pulse", text); byId("pulse").className = "pill " + kind; }
  function listen() {
    const stream = new EventSource("/stream");
    stream.onmessage = function (message) {
      last = JSON.parse(message.data);
      lastAt = Date.now();
      if (past.length && last.moment && past[past.length - 1][0] !== last.moment[0]) { past.push(last.moment); }
      last.history = past = past.slice(-180);
      pulse("live", "good");
      show(last);
    };
    stream.onerror = function () {
      pulse("the broker does not answer", "bad");
      if (stream.readyState === EventSource.CLOSED) { setTimeout(listen, 2000); }
    };
  }
  setInterval(function () {
    if (lastAt && Date.now() - lastAt > STALLED_MS) { pulse("nothing new since " + new Date(lastAt).toLocaleTimeString(), "bad"); }
  }, 1000);
  window.addEventListener("resize", function () { if (last) { showMap(last); } });

  // Light or dark: as the system has it until the reader chooses.
  byId("theme").addEventListener("click", function () {
    const root = document.documentElement;
    const isDark = (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    root.dataset.theme = isDark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch (_) { /* a private window */ }
  });
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") { document.documentElement.dataset.theme = chosen; }
  } catch (_) { /* a private window */ }
  listen();
}());
