// The first view: numbers of all brokers together, the map, the last hand-offs, what was lost and why, charts.
import { Charts } from "./charts.js";
import { DOWN_S, isGuest, NAME_MAX, showMap, standing } from "./map.js";
import { age, ask, byId, bytes, clientLink, count, element, fill, link, many, millis, named, row, shown, sumOf, total, write } from "./words.js";

const MOVES_SHOWN = 12;
const HOUR_EVERY_MS = 10000;
const COLUMNS = ["broker", "state", "clients", "sessions", "in /s", "out /s", "waiting", "hand-offs", "not delivered",
  "refused", "longest turn", "store", "links"];

function rate(id, value) { byId(id).replaceChildren(count(value), element("small", " /s")); }

// Reasons of all brokers: [[reason, count, brokers], ...], the most frequent first.
function reasons(brokers, field) {
  const found = new Map();
  for (const broker of brokers) {
    for (const reason of Object.keys(broker.report[field] || {})) {
      const one = found.get(reason) || [reason.replaceAll("_", " "), 0, []];
      one[1] += broker.report[field][reason];
      one[2].push(broker.name);
      found.set(reason, one);
    }
  }
  return Array.from(found.values()).sort(function (a, b) { return b[1] - a[1]; });
}
function reasonRow(one) {
  const term = element("dt", one[0] + " ");
  term.append(element("small", one[2].map(shown).join(", ")));
  return [term, element("dd", count(one[1]))];
}
function listReasons(id, rows) {
  byId(id).replaceChildren(...(rows.length ? rows.flatMap(reasonRow) : [element("dt", "Nothing.", "none")]));
}
// What went amiss between brokers and was made good: [[what, count, brokers], ...].
function mended(brokers) {
  const sums = {
    "links told all anew": function (report) {
      return Object.values(report.links).reduce(function (sum, one) { return sum + (one.resets || 0); }, 0);
    },
    "events sent again by a neighbour": function (report) { return report.repeated || 0; },
    "SUBACKs not confirmed by all": function (report) { return report.unconfirmed || 0; },
    "events that a neighbour forgot, and are lost at most": function (report) { return report.forgotten || 0; },
  };
  return Object.keys(sums).map(function (what) {
    const where = brokers.filter(function (broker) { return sums[what](broker.report); });
    const sum = where.reduce(function (all, broker) { return all + sums[what](broker.report); }, 0);
    return [what, sum, where.map(function (broker) { return broker.name; })];
  }).filter(function (one) { return one[1]; });
}

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
  write("p99", state.latency.count ? "99%: " + millis(state.latency.p99_s) : "none this minute");
  const queue = total(reports, "queue_bytes");
  write("queue", bytes(queue));
  const fullest = fresh.slice().sort(function (a, b) { return b.report.queue_bytes - a.report.queue_bytes; })[0];
  write("queue-where", queue ? "most at " + shown(fullest.name) : "for clients");
  for (const kind of [["lost", "dropped"], ["refused", "refused"]]) {
    const rows = reasons(known, kind[1]);
    const sum = rows.reduce(function (all, one) { return all + one[1]; }, 0);
    write(kind[0], count(sum));
    write(kind[0] + "-why", rows.length ? rows[0][0] : "nothing");
    byId(kind[0] + "-tile").classList.toggle("amiss", sum > 0);
    listReasons(kind[0] + "-list", rows);
  }
  listReasons("mended-list", mended(known));
  const waits = state.at_risk.filter(function (one) { return one.waits; });
  byId("risk-tile").hidden = byId("risk-part").hidden = !state.has_copies;
  byId("risk-tile").classList.toggle("amiss", waits.length > 0 || state.votes_at_risk !== "");
  write("risk", count(waits.reduce(function (sum, one) { return sum + one.sessions; }, 0)));
  write("risk-why", waits.length ? "at " + waits.map(function (one) { return shown(one.broker); }).join(", ")
    : state.votes_at_risk ? "few processes vote: see below"
    : state.at_risk.length ? "copies whole, " + state.at_risk.length + " played elsewhere" : "all copies whole");
  const risks = state.at_risk.map(function (one) {
    const what = many(one.sessions, "session") + (one.waits ? "" : ", not at risk");
    return element("li", what + ": " + shown(one.why) + ".", one.waits ? "" : "calm");
  });
  if (state.votes_at_risk) { risks.unshift(element("li", shown(state.votes_at_risk) + ".")); }
  byId("risk-list").replaceChildren(...(risks.length ? risks
    : [element("li", "Nothing: every session is at as many other processes as it should be.", "none")]));
  byId("stores-list").replaceChildren(...state.lost_stores.map(function (one) { return element("li", shown(one)); }));
}

function showMoves(moves) {
  const list = byId("moves");
  if (!moves.length) { list.replaceChildren(element("li", "Nobody has moved yet.", "none")); return; }
  list.replaceChildren(...moves.slice(-MOVES_SHOWN).reverse().map(function (move) {
    const made = element("li");
    const who = move.client.length < NAME_MAX ? clientLink(move.client)
      : link("#/clients?q=" + encodeURIComponent(move.client), move.client, "client");
    const way = element("span", shown(move.origin) + " → " + shown(move.broker));
    made.append(who, way, element("span", millis(move.took_s)),
      element("span", move.complete ? move.how : "incomplete", move.complete ? "" : "incomplete"));
    if (!move.complete) { made.title = "Some of what waited elsewhere was lost."; }
    return made;
  }));
}

function showBrokers(state) {
  fill(byId("brokers"), state.brokers.map(function (broker) {
    const report = broker.report, isUp = broker.state === "up";
    const name = element("span");
    name.append(named(broker.name, "strong"), " ", element("small", isGuest(broker) ? "no doors for clients" : broker.listen));
    const isRefusing = isUp && report.refusing;
    const badge = element("span", standing(broker), "state " + (isRefusing ? "refusing" : broker.state));
    if (isRefusing) { badge.title = report.refusing; }
    if (!isUp) { return row(COLUMNS, [name, badge, ...new Array(11).fill(null)]); }
    const links = element("span");
    for (const peer of Object.keys(report.links).sort()) {
      const one = report.links[peer], isAmiss = !one.up && one.down_s > DOWN_S;
      links.append(element("span", shown(peer) + (one.up ? "" : " down " + age(one.down_s || 0)), isAmiss ? "down" : ""), " ");
    }
    return row(COLUMNS, [name, badge, count(report.clients), count(report.sessions), count(report.published_rate),
      count(report.delivered_rate), bytes(report.queue_bytes), count(report.handoffs), count(sumOf(report.dropped)),
      count(sumOf(report.refused)), report.longest_turn_s ? millis(report.longest_turn_s) : null,
      report.store === "none" ? "in memory" : bytes(report.store_bytes) + (report.store === "ok" ? "" : ", full") +
        (report.copies ? "; " + report.copies : ""), links]);
  }), "No brokers.");
}

// The charts' past: asked for once, then each second adds to the minutes; the hour is asked for now and then.
export class Overview {
  constructor() {
    this.charts = new Charts();
    this.minutes = [];
    this.hour = [];
    this.askedAt = 0;
    this.range = 180;
    for (const button of document.querySelectorAll("[data-range]")) {
      button.addEventListener("click", this.choose.bind(this, Number(button.dataset.range)));
    }
    byId("of-broker").addEventListener("change", this.load.bind(this));
    window.addEventListener("resize", this.resized.bind(this));
    this.load();
  }
  choose(range) {
    this.range = range;
    for (const button of document.querySelectorAll("[data-range]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.range) === range));
    }
    this.load();
  }
  async load() {
    this.askedAt = Date.now();
    const broker = byId("of-broker").value;
    try {
      const found = await ask("history", broker ? { broker: broker } : {});
      if (broker !== byId("of-broker").value) { return; }
      this.minutes = found.minutes;
      this.hour = found.hour;
      this.drawCharts();
    } catch (_) { /* the stream says that the broker is gone */ }
  }
  resized() { if (this.state && !byId("view-overview").hidden) { showMap(this.state); this.charts.again(); } }
  drawCharts() {
    if (!byId("view-overview").hidden) { this.charts.show(this.range > 180 ? this.hour : this.minutes, this.range); }
  }
  add(state) {
    const name = byId("of-broker").value;
    let moment = state.moment;
    if (name) {
      const broker = state.brokers.find(function (one) { return one.name === name; });
      const report = broker && broker.state === "up" ? broker.report : null;
      moment = report && [state.at_s, report.published_rate, report.delivered_rate, report.handoff_rate,
        report.queue_bytes, report.clients, null, null];
    }
    const last = this.minutes[this.minutes.length - 1];
    if (moment && (!last || moment[0] > last[0])) { this.minutes = this.minutes.slice(-179).concat([moment]); }
    if (this.range > 180 && Date.now() - this.askedAt > HOUR_EVERY_MS) { this.load(); }
  }
  named(brokers) {
    const select = byId("of-broker");
    if (select.options.length - 1 === brokers.length) { return; }
    select.replaceChildren(...[""].concat(brokers).map(function (name) {
      const option = element("option", name ? shown(name) : "all brokers");
      option.value = name;
      return option;
    }));
  }
  show(state) {
    this.state = state;
    this.named(state.brokers.map(function (broker) { return broker.name; }));
    this.add(state);
    if (byId("view-overview").hidden) { return; }
    const fresh = state.brokers.filter(function (broker) { return broker.state === "up"; });
    showTiles(state, fresh, fresh.map(function (broker) { return broker.report; }));
    showMap(state);
    showMoves(state.moves);
    this.drawCharts();
    showBrokers(state);
  }
}
