// One client: where it is and was, its session, what it wants, what waits for it. Asked for every second while it
// is looked at, of all brokers, whichever it is with.
import { follow } from "./map.js";
import { age, ask, byId, bytes, clock, count, drawn, element, fill, keptText, many, millis, missingText, named, row, shown, write } from "./words.js";

const EVERY_MS = 1000;
const TRAIL_COLUMNS = ["at", "from", "to", "took", "how"];
const HOW = { copy: "a copy was ready", fetched: "fetched from there", first: "first visit", same: "came back" };

function fact(list, name, value, hint) {
  const term = element("dt", name);
  if (hint) { term.dataset.hint = hint; term.tabIndex = 0; }
  const said = element("dd");
  said.append(value === null || value === undefined || value === "" ? "–" : value);
  list.push(term, said);
}
function forSeconds(seconds) { return seconds === null ? "for good" : seconds ? age(seconds) : "ends with its connection"; }

function showSession(found, session) {
  const list = [], now = found.at_s;
  fact(list, session.here ? "connected to" : "last seen at", named(session.broker, "strong"));
  fact(list, session.here ? "since" : "away since",
    session.since_s ? clock(session.since_s) + ", " + age(now - session.since_s) : null);
  fact(list, "came from", session.came_from === session.broker ? "here: it was away" : session.came_from ? named(session.came_from) : null, "The broker that handed the session over.");
  fact(list, "address", session.address ? shown(session.address) : null);
  fact(list, "user", session.user ? named(session.user) : "without a name");
  fact(list, "last heard", session.heard_s ? age(now - session.heard_s) + " ago" : null,
    "When the client last sent anything, a ping perhaps.");
  fact(list, "kept when it leaves", forSeconds(session.expiry_s),
    "How long subscriptions and waiting events are kept while the client is away.");
  fact(list, "ends at", session.expires_s ? clock(session.expires_s) : null, "When the session of a client that is away ends.");
  fact(list, "copies", keptText(session.broker, session.kept),
    "Other processes that have all of this session, and all that waits for it: it outlives the loss of as many disks.");
  fact(list, "reads", session.reads ? "as fast as it is sent to" : "too slowly at present");
  byId("client-session").replaceChildren(...list);
}
function showWaiting(found, session) {
  const wait = session.waiting, list = [];
  byId("client-waiting-count").textContent = wait[0] ? many(wait[0], "event") : "Nothing waits.";
  if (wait[0]) {
    fact(list, "bytes", bytes(wait[1]));
    fact(list, "the oldest came", wait[2] ? clock(wait[2]) + ", " + age(found.at_s - wait[2]) + " ago" : null);
    fact(list, "sent, not acknowledged", count(wait[4]));
    fact(list, "mostly on", wait[3].map(function (pair) { return shown(pair[0]) + " (" + count(pair[1]) + ")"; }).join(", "));
  }
  for (const copy of found.copies) {
    const words = { passive: "ready to store", active: "storing " + many(copy.waiting[0], "event"), leaving: "handing over" };
    fact(list, "copy at " + shown(copy.broker), words[copy.state] || copy.state,
      "A copy waits where the client may come next: it stores while the client is away, so that nothing has to be fetched.");
  }
  byId("client-waiting").replaceChildren(...list);
}

// Stays between hand-offs: [broker, from, until].
function staysOf(found, session) {
  const trail = found.trail, stays = [];
  trail.forEach(function (move, number) {
    const came = move.at_s - move.took_s;
    if (!number) { stays.push([move.origin, null, came]); }
    const next = trail[number + 1];
    stays.push([move.broker, came, next ? next.at_s - next.took_s : null]);
  });
  if (session) {
    const last = stays[stays.length - 1];
    const until = session.here ? found.at_s : session.since_s || found.at_s;
    if (last && last[0] === session.broker) { last[2] = until; } else { stays.push([session.broker, session.here ? session.since_s : session.started_s, until]); }
  }
  return stays.filter(function (stay) { return stay[2] !== null; });
}
function showTrail(found, session) {
  const stays = staysOf(found, session), svg = byId("client-trail");
  const lanes = Array.from(new Set(stays.map(function (stay) { return stay[0]; }))).sort();
  const width = Math.max(260, svg.clientWidth), lane = 26, left = 58, bottom = 22, height = Math.max(1, lanes.length) * lane + bottom + 6;
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  svg.style.height = height + "px";
  const known = stays.flatMap(function (stay) { return [stay[1], stay[2]]; }).filter(function (at) { return at; });
  const to = found.at_s, from = Math.min(to - 60, ...known) - 5;
  const x = function (at) { return left + (width - left - 10) * (Math.max(from, at) - from) / (to - from); };
  const parts = [];
  lanes.forEach(function (name, number) {
    const y = number * lane + 17;
    parts.push(drawn("line", { class: "grid", x1: left, x2: width - 10, y1: y, y2: y }));
    const text = drawn("text", { class: "lane", x: left - 8, y: y + 4, "text-anchor": "end" });
    text.textContent = shown(name.length > 7 ? name.slice(0, 6) + "…" : name);
    parts.push(text);
  });
  let before = null;
  for (const stay of stays) {
    const y = lanes.indexOf(stay[0]) * lane + 17, start = x(stay[1] || from), end = Math.max(x(stay[2]), start + 2);
    if (before) { parts.push(drawn("line", { class: "hop", x1: before[0], y1: before[1], x2: start, y2: y })); }
    const bar = drawn("rect", { class: "stay" + (stay[1] ? "" : " before"), x: start, y: y - 6, width: end - start, height: 12, rx: 3 });
    drawn("title", {}, bar).textContent = shown(stay[0]) + (stay[1] ? " from " + clock(stay[1]) : "") + " until " + clock(stay[2]);
    parts.push(bar);
    before = [end, y];
  }
  const most = Math.max(2, Math.floor((width - left) / 90)), step = [10, 15, 30, 60, 120, 300, 600, 900].find(function (one) { return (to - from) / one <= most; }) || 1800;
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const text = drawn("text", { class: "tick", x: Math.max(left + 22, Math.min(x(at), width - 24)), y: height - 4, "text-anchor": "middle" });
    text.textContent = clock(at, step % 60 !== 0);
    parts.push(text);
  }
  svg.replaceChildren(...parts);
  svg.setAttribute("aria-label", stays.length ? "Stays at brokers: " + stays.map(function (stay) { return shown(stay[0]); }).join(", then ") : "No stay is known");
  fill(byId("trail-table"), found.trail.slice(-15).reverse().map(function (move) {
    return row(TRAIL_COLUMNS, [clock(move.at_s), named(move.origin), named(move.broker), millis(move.took_s),
      move.complete ? HOW[move.how] || move.how : element("span", "incomplete: something was lost", "down")]);
  }), "It has not moved in the last hour.");
}

export class ClientView {
  constructor() {
    this.client = null;
    this.asked = 0;
    setInterval(this.again.bind(this), EVERY_MS);
  }
  open(client) {
    this.client = client;
    follow(client);
    this.asked += 1;
    byId("client-name").replaceChildren(named(client));
    byId("client-state").textContent = "…";
    byId("client-body").hidden = true;
    write("client-note", "");
    this.load();
  }
  again() { if (this.client !== null && !byId("view-client").hidden && !document.hidden) { this.load(); } }
  async load() {
    const number = this.asked += 1, client = this.client;
    try {
      const found = await ask("client", { id: client });
      if (number === this.asked && client === this.client) { this.show(found); }
    } catch (error) {
      if (number === this.asked) { write("client-note", error.message); }
    }
  }
  show(found) {
    const session = found.sessions[0], pill = byId("client-state");
    write("client-note", missingText(found.missing));
    byId("client-body").hidden = !session;
    if (!session) {
      write(pill, "not known");
      pill.className = "state silent";
      write("client-note", ("No broker has a session of this client. " + missingText(found.missing)).trim());
      return;
    }
    write(pill, session.here ? "at " + shown(session.broker) : "away, last at " + shown(session.broker));
    pill.className = "state " + (session.here ? "up" : "away");
    showSession(found, session);
    showWaiting(found, session);
    showTrail(found, session);
    fill(byId("wants-table"), session.subscriptions.map(function (one) {
      const topic = named(one[0], "code"), wanted = one[1] ? named(one[1], "code") : element("span", "everything", "none");
      return row(["topic filter", "content filter", "QoS", "since", "of what it missed"],
        [topic, wanted, String(one[2]), one[3] ? clock(one[3]) : null, one[4]]);
    }), "It subscribes to nothing.");
    write("wants-note", session.subscriptions_count > session.subscriptions.length
      ? "The first " + session.subscriptions.length + " of " + count(session.subscriptions_count) + "." : "");
  }
}
