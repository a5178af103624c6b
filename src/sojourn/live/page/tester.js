// "Who would get this?": a topic and a JSON object go to all brokers, which answer by their own indexes and publish
// nothing.
import { ask, byId, clientLink, count, element, fill, many, missingText, named, row, shown, write } from "./words.js";

const HOW = {
  now: ["at once", "up"],
  kept: ["kept until it is back", "away"],
  missed: ["missed: it is away", "silent"],
  policy: ["may not see it", "silent"],
};

function summary(found) {
  const counts = found.counts, now = counts.now || 0, kept = counts.kept || 0;
  if (!now && !kept && !counts.missed && !counts.policy) { return "Nobody would get this."; }
  const said = [many(now + kept, "client") + " would get this"];
  if (kept) { said.push(": " + count(now) + " at once, " + count(kept) + " when back"); } else if (now) { said.push(" at once"); }
  said.push(".");
  if (counts.missed) { said.push(" " + count(counts.missed) + " would miss it, being away."); }
  if (counts.policy) { said.push(" " + count(counts.policy) + " may not see it."); }
  return said.join("");
}

export class Tester {
  constructor() {
    this.form = byId("tester-form");
    this.asked = 0;
    this.form.addEventListener("submit", function (event) { event.preventDefault(); this.load(); }.bind(this));
  }
  open(given) {
    if (given.get("topic") !== null) { this.form.elements.topic.value = given.get("topic"); this.load(); }
  }
  async load() {
    const number = this.asked += 1;
    const given = Object.fromEntries(new FormData(this.form));
    byId("tester-error").hidden = true;
    try {
      const found = await ask("who", given);
      if (number === this.asked) { this.show(found); }
    } catch (error) {
      if (number !== this.asked) { return; }
      byId("tester-error").hidden = false;
      write("tester-error", error.message);
      byId("tester-found").hidden = true;
      byId("tester-empty").hidden = false;
    }
  }
  show(found) {
    byId("tester-found").hidden = false;
    byId("tester-empty").hidden = true;
    write("tester-summary", summary(found));
    const where = Object.keys(found.by_broker).filter(function (name) { return found.by_broker[name]; })
      .map(function (name) { return shown(name) + " " + count(found.by_broker[name]); });
    const total = Object.values(found.counts).reduce(function (all, one) { return all + one; }, 0);
    write("tester-note", [where.length ? "By broker: " + where.join(", ") + "." : "",
      "Attributes read: " + found.attributes.map(shown).join(", ") + ".",
      total > found.rows.length ? "The first " + found.rows.length + " are shown." : "", missingText(found.missing)].filter(Boolean).join(" "));
    fill(byId("tester-table"), found.rows.map(function (one) {
      const how = HOW[one.how] || [one.how, "away"];
      const by = element("span");
      by.append(named(one.topic, "code"));
      if (one.share) { by.append(" ", element("small", "one of the share gets it")); }
      return row(["client", "broker", "gets it", "by the topic filter", "and the content filter", "QoS"],
        [clientLink(one.client), named(one.broker), element("span", how[0], "state " + how[1]), by,
          one.filter ? named(one.filter, "code") : element("span", "everything", "none"), String(one.qos)]);
    }), "No subscription fits this event.");
  }
}
