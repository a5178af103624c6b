// Lists that the broker makes when asked: clients, filters and topics, in pages; and links, which the stream brings.
// A list that is looked at is asked for again every few seconds.
import { standingOfLink } from "./map.js";
import { age, ask, byId, bytes, clientLink, clock, count, element, fill, keptText, link, many, missingText, named, row, shown, write } from "./words.js";

const AGAIN_MS = 5000;
const TYPED_MS = 250;

function code(text, kind) { const made = named(text, kind); made.classList.add("code"); return made; }
function badge(text, kind) { return element("span", text, "state " + kind); }

// One list: a form that narrows it, a table, a pager. `read` makes rows of what the broker found.
class List {
  constructor(name, columns, read, nothing) {
    this.name = name; this.columns = columns; this.read = read; this.nothing = nothing;
    this.form = byId(name + "-form"); this.table = byId(name + "-table");
    this.pages = [""]; // what each page begins after; the last one is shown
    this.next = null;
    this.asked = 0;
    this.form.addEventListener("submit", function (event) { event.preventDefault(); });
    this.form.addEventListener("input", this.typed.bind(this));
    const pager = byId(name + "-pager");
    if (pager) {
      pager.querySelector(".back").addEventListener("click", this.turn.bind(this, false));
      pager.querySelector(".on").addEventListener("click", this.turn.bind(this, true));
      this.pager = pager;
    }
    setInterval(this.again.bind(this), AGAIN_MS);
  }
  get isShown() { return !byId("view-" + this.name).hidden && !document.hidden; }
  again() { if (this.isShown) { this.load(); } }
  typed() {
    clearTimeout(this.timer);
    this.pages = [""];
    this.timer = setTimeout(this.load.bind(this), TYPED_MS);
  }
  turn(isOn) {
    if (isOn && this.next !== null) { this.pages.push(this.next); } else if (!isOn && this.pages.length > 1) { this.pages.pop(); }
    this.load();
  }
  async load() {
    const number = this.asked += 1;
    const given = Object.fromEntries(Array.from(new FormData(this.form)).filter(function (pair) { return pair[1]; }));
    const after = this.pages[this.pages.length - 1];
    if (after) { given.after = after; }
    try {
      const found = await ask(this.name, given);
      if (number !== this.asked) { return; }
      this.next = found.next === undefined ? null : found.next;
      fill(this.table, found.rows.map(this.read.bind(null, found, this.columns)), this.nothing);
      write(this.name + "-note", this.note(found));
      byId(this.name + "-note").classList.toggle("bad", found.missing.length > 0);
    } catch (error) {
      if (number !== this.asked) { return; }
      write(this.name + "-note", error.message);
      byId(this.name + "-note").classList.add("bad");
    }
    if (this.pager) {
      this.pager.querySelector(".back").disabled = this.pages.length < 2;
      this.pager.querySelector(".on").disabled = this.next === null;
      write(this.pager.querySelector(".page"), "page " + this.pages.length);
    }
  }
  note(found) {
    const said = [];
    if (this.name === "clients") {
      said.push(found.count === 1 ? "1 client." : count(found.count) + " clients.");
      if (found.looked < found.sessions) {
        said.push("Only " + count(found.looked) + " of " + count(found.sessions) + " were looked at; a whole name is always found.");
      }
    } else if (this.name === "topics") {
      if (found.since_s) { said.push("Counted since " + clock(found.since_s) + "."); }
      if (found.count > found.rows.length) { said.push("The busiest " + found.rows.length + " of at least " + count(found.count) + "."); }
      if (found.beyond) { said.push(many(found.beyond, "event") + " on further topics were not counted by topic."); }
    }
    said.push(missingText(found.missing));
    return said.filter(Boolean).join(" ");
  }
}

function clientRow(_found, columns, one) {
  const since = one.since_s ? age(Date.now() / 1000 - one.since_s) : null;
  const where = element("span");
  where.append(named(one.broker));
  if (one.kept) { where.append(" ", element("small", keptText(one.broker, one.kept))); }
  return row(columns, [clientLink(one.client), where, one.here ? badge("connected", "up") : badge("away", "away"),
    since, one.user ? named(one.user) : null, count(one.subscriptions),
    one.waiting ? many(one.waiting, "event") + ", " + bytes(one.waiting_bytes) : "nothing"]);
}
function testAddress(topic) { return "#/tester?topic=" + encodeURIComponent(topic); }

function filterRow(_found, columns, one) {
  return row(columns, [code(one.topic), one.filter ? code(one.filter) : element("span", "everything", "none"),
    count(one.subscribers), one.brokers.map(shown).join(", "), one.since_s ? clock(one.since_s) : null]);
}
const before = new Map(); // topic -> [events, at]: what it was when it was last asked for, and the rate since
function topicRow(found, columns, one) {
  const known = before.get(one.topic);
  let rate = known ? known[2] : null;
  if (known && found.at_s - known[1] > 0.5) { rate = Math.max(0, (one.events - known[0]) / (found.at_s - known[1])); }
  if (before.size > 5000) { before.clear(); }
  if (!known || found.at_s - known[1] > 0.5) { before.set(one.topic, [one.events, found.at_s, rate]); }
  return row(columns, [code(one.topic), count(one.events), rate === null ? null : count(Math.round(rate * 10) / 10) + " /s",
    one.last_s ? age(found.at_s - one.last_s) + " ago" : null,
    one.retained_bytes === null ? "no" : bytes(one.retained_bytes), one.brokers.map(shown).join(", "),
    link(testAddress(one.topic), element("span", "who gets it?"))]);
}

export function showLinks(state) {
  const reports = new Map(state.brokers.map(function (one) { return [one.name, one.state === "up" ? one.report : null]; }));
  const columns = ["link", "state", "use", "waiting there", "waiting back", "not sent", "told anew"];
  const queue = function (end) { return end ? bytes(end.queue_bytes) + " in " + many(end.queue_frames, "frame") : null; };
  fill(byId("links-table"), state.links.map(function (one) {
    const told = standingOfLink(one, reports), ends = told.ends;
    const name = element("span");
    name.append(named(one[0], "strong"), " – ", named(one[1], "strong"));
    const upSince = Math.max(0, ...ends.map(function (end) { return end.since_s || 0; }));
    let standing = badge(upSince ? "up for " + age(state.at_s - upSince) : "up", "up");
    if (!one[2]) { standing = badge("spare", "spare"); } else if (told.isDown) {
      standing = badge("down for " + age(told.downFor), told.isAmiss ? "silent" : "away");
    } else if (!told.isUp) { standing = badge("not known", "silent"); }
    const sum = function (field) { return ends.reduce(function (all, end) { return all + (end[field] || 0); }, 0); };
    return row(columns, [name, standing, one[2] ? "in the tree" : "not in the tree", queue(told.there), queue(told.back),
      one[2] ? count(sum("refused")) : null, one[2] ? count(sum("resets")) : null]);
  }), "No links: this broker is alone.");
}

export function makeLists() {
  const lists = {
    clients: new List("clients", ["client", "broker", "state", "since", "user", "subscriptions", "waits for it"], clientRow,
      "No client fits."),
    filters: new List("filters", ["topic filter", "content filter", "subscribers", "at", "since"], filterRow, "No subscription fits."),
    topics: new List("topics", ["topic", "events", "rate", "last", "retained", "published at", ""], topicRow,
      "Nothing was published on such a topic."),
  };
  return lists;
}
export function nameBrokers(brokers) {
  for (const select of document.querySelectorAll("select.brokers")) {
    if (select.options.length - 1 === brokers.length) { continue; }
    const chosen = select.value;
    select.replaceChildren(...[""].concat(brokers).map(function (name) {
      const option = element("option", name ? shown(name) : "all brokers");
      option.value = name;
      return option;
    }));
    select.value = chosen;
  }
}
