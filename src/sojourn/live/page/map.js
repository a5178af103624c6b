// The map: brokers and links where they always are, clients as dots that travel.
// Nothing is remembered here but where dots are; a page opened late shows the same as one that was left open.
import { age, byId, bytes, clientAddress, count, drawn, shown } from "./words.js";

const NODE_R = 24; // radius of a broker, in pixels
const MOVED_MS = 2500; // how long a client that moved is marked
const AWAY_MS = 60000; // how long a client that has gone is remembered
export const NAME_MAX = 64; // longer names are cut in reports
export const DOWN_S = 3; // a link that is down for longer is amiss, not merely being made again

let followed = null; // the client that somebody looks at
export function follow(client) { followed = client === null ? null : client.slice(0, NAME_MAX); }
// A name that was cut cannot be looked up: it is searched for.
function addressOf(client) {
  return client.length < NAME_MAX ? clientAddress(client) : "#/clients?q=" + encodeURIComponent(client);
}

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

export function showMap(state) {
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

// What the brokers at its ends tell of a link. It is down if either says so, whether the other is heard or not.
export function standingOfLink(link, reports) {
  const one = reports.get(link[0]), other = reports.get(link[1]);
  const there = one && one.links[link[1]], back = other && other.links[link[0]];
  const ends = [there, back].filter(Boolean);
  const isUp = ends.length === 2 && ends.every(function (end) { return end.up; });
  const isDown = ends.some(function (end) { return !end.up; });
  const downFor = Math.max(0, ...ends.map(function (end) { return end.down_s || 0; }));
  const isAmiss = !isUp && (downFor > DOWN_S || ends.length < 2);
  return { there: there, back: back, ends: ends, isUp: isUp, isDown: isDown, isAmiss: isAmiss, downFor: downFor };
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
  const told = standingOfLink(link, reports), isUp = told.isUp, isAmiss = told.isAmiss, downFor = told.downFor;
  const from = at.get(link[0]), to = at.get(link[1]);
  const line = group.firstChild, text = group.lastChild;
  line.setAttribute("class", "link " + (!link[2] ? "spare" : isUp ? "up" : isAmiss ? "down" : "coming"));
  line.setAttribute("x1", from[0]); line.setAttribute("y1", from[1]);
  line.setAttribute("x2", to[0]); line.setAttribute("y2", to[1]);
  const queued = told.ends.reduce(function (sum, end) { return sum + end.queue_bytes; }, 0);
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
    drawn("text", { y: -1 }, group).textContent = shown(broker.name.length > 6 ? broker.name.slice(0, 5) + "…" : broker.name);
    drawn("text", { class: "count", y: 13 }, group);
    nodes.set(broker.name, group);
  }
  const report = broker.report;
  const isRefusing = broker.state === "up" && report.refusing;
  group.setAttribute("class", "node " + (isRefusing ? "refusing" : broker.state));
  group.setAttribute("transform", "translate(" + at[0] + " " + at[1] + ")");
  group.firstChild.textContent = shown(broker.name) + ", " + broker.listen + ": " + standing(broker);
  group.lastChild.textContent = broker.state === "up" ? count(report.clients) : "?";
}

export function standing(broker) {
  if (broker.state === "unknown") { return "not heard of yet"; }
  if (broker.state === "silent") { return "silent for " + count(Math.round(broker.silent_s)) + " s"; }
  if (broker.report.refusing) { return "refusing"; }
  return isGuest(broker) ? "up, as a guest" : "up";
}
// Whether another process plays a broker: it has no doors for clients then.
export function isGuest(broker) {
  return broker.state === "up" && (broker.report.copies || "").startsWith("played by ");
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
      drawn("title", {}, circle).textContent = shown(client);
      circle.addEventListener("click", function () { location.hash = addressOf(client); });
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
    dot.circle.setAttribute("class", "dot" + (dot.goneAt ? " away" : hasMoved ? " moving" : "") +
      (client === followed ? " followed" : ""));
    dot.circle.setAttribute("r", client === followed ? 6.5 : hasMoved && !dot.goneAt ? 4.5 : spacing < 9 ? 2.8 : 3.5);
  });
}
