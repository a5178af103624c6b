// The page as a whole: the stream of the broker's state, which view is shown, light or dark.
// The address after # says what is shown, so that a view can be kept as a bookmark and gone back from.
import { ClientView } from "./client.js";
import { startHints } from "./hints.js";
import { makeLists, nameBrokers, showLinks } from "./lists.js";
import { follow } from "./map.js";
import { Overview } from "./overview.js";
import { Tester } from "./tester.js";
import { ask, at, byId, clientAddress, clock, many, shown, total, write } from "./words.js";

const STALLED_MS = 4000;
const SCHEMES = { proactive: "pro-active hand-off", reactive: "reactive hand-off", durable: "durable subscriptions" };
const VIEWS = ["overview", "clients", "client", "filters", "topics", "links", "tester"];

const overview = new Overview(), lists = makeLists(), client = new ClientView(), tester = new Tester();
let last = null, lastAt = 0, stream = null;

// Which view ---------------------------------------------------------------------------------------------

function wanted() {
  const said = location.hash.replace(/^#\/?/, "");
  const cut = said.indexOf("?");
  const parts = (cut < 0 ? said : said.slice(0, cut)).split("/");
  let name = parts[0] || "overview", id = null;
  if (name === "clients" && parts.length > 1) {
    name = "client";
    try { id = decodeURIComponent(parts.slice(1).join("/")); } catch (_) { name = "clients"; }
  }
  return { name: VIEWS.includes(name) ? name : "overview", id: id, given: new URLSearchParams(cut < 0 ? "" : said.slice(cut + 1)) };
}
function turn() {
  const to = wanted();
  for (const name of VIEWS) { byId("view-" + name).hidden = name !== to.name; }
  for (const tab of document.querySelectorAll("nav a")) {
    const isHere = tab.dataset.view === to.name || (tab.dataset.view === "clients" && to.name === "client");
    if (isHere) { tab.setAttribute("aria-current", "page"); } else { tab.removeAttribute("aria-current"); }
  }
  document.title = (to.id === null ? "" : shown(to.id) + " – ") + "Sojourn, live";
  if (to.name === "client" && to.id) { client.open(to.id); } else if (to.name !== "overview") { follow(null); }
  if (to.name === "clients" && to.given.get("q") !== null) {
    byId("clients-form").elements.q.value = to.given.get("q");
    lists.clients.pages = [""];
  }
  if (lists[to.name]) { lists[to.name].load(); }
  if (to.name === "tester") { tester.open(to.given); }
  if (last) { show(last); }
}
window.addEventListener("hashchange", function () { turn(); window.scrollTo(0, 0); });
// A name in full leads straight to its client, a part of one to the list of all that have it.
byId("find").addEventListener("submit", async function (event) {
  event.preventDefault();
  const needle = byId("find").elements.q.value.trim(), from = location.hash;
  let isClient = false;
  try { isClient = needle !== "" && (await ask("client", { id: needle })).sessions.length > 0; } catch (_) { /* the list says why */ }
  if (location.hash !== from) { return; } // the reader has gone elsewhere meanwhile
  location.hash = isClient ? clientAddress(needle) : needle ? "#/clients?q=" + encodeURIComponent(needle) : "#/clients";
});
byId("clients-form").addEventListener("keydown", function (event) {
  if (event.key !== "Enter" || event.target.name !== "q") { return; }
  const needle = event.target.value.trim();
  const found = Array.from(byId("clients-table").querySelectorAll("a.client"));
  if (found.some(function (one) { return one.getAttribute("href") === clientAddress(needle); })) { location.hash = clientAddress(needle); }
});

// What the stream says -----------------------------------------------------------------------------------

function show(state) {
  const fresh = state.brokers.filter(function (broker) { return broker.state === "up"; });
  const missing = state.brokers.length - fresh.length;
  const clients = total(fresh.map(function (broker) { return broker.report; }), "clients");
  write("title", many(state.brokers.length, "broker") + ", " + many(clients, "client") +
    (missing ? "; " + many(missing, "broker") + " not heard of" : ""));
  write("lede", (SCHEMES[state.scheme] || state.scheme) + ", " + state.routing + " routing, seen from " + shown(state.broker) +
    "; release " + state.version);
  nameBrokers(state.brokers.map(function (broker) { return broker.name; }));
  overview.show(state);
  if (!byId("view-links").hidden) { showLinks(state); }
  document.documentElement.dataset.live = "yes";
}
function pulse(text, kind) { write("pulse", text); byId("pulse").className = "pill " + kind; }
// What was said last, with the broker that said it silent since then; of the others nothing newer is known.
function withoutNews(state) {
  const silent = { state: "silent", silent_s: (Date.now() - lastAt) / 1000 };
  return { ...state, brokers: state.brokers.map(function (broker) {
    return broker.name === state.broker ? { ...broker, ...silent } : broker;
  }) };
}
function listen() {
  stream = new EventSource(at("stream"));
  const mine = stream;
  stream.onmessage = function (message) {
    last = JSON.parse(message.data);
    lastAt = Date.now();
    pulse("live", "good");
    show(last);
  };
  stream.onerror = function () {
    pulse("the broker does not answer", "bad");
    if (last) { show(withoutNews(last)); }
    if (mine.readyState === EventSource.CLOSED) { setTimeout(function () { if (stream === mine) { listen(); } }, 2000); }
  };
}
setInterval(function () {
  if (stream && lastAt && Date.now() - lastAt > STALLED_MS) { pulse("nothing new since " + clock(lastAt / 1000), "bad"); }
}, 1000);
// A page that nobody looks at asks for nothing.
document.addEventListener("visibilitychange", function () {
  if (document.hidden && stream) { stream.close(); stream = null; } else if (!document.hidden && !stream) { overview.load(); listen(); }
});

// Light or dark: as the system has it until the reader chooses -------------------------------------------

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

startHints();
turn();
listen();
