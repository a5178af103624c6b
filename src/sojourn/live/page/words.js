// Words, numbers and elements that all parts of the page use. Whatever clients and brokers are called goes in as
// text, never as markup; characters that would hide or turn round what follows are shown as a dot.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const SVG = "http://www.w3.org/2000/svg";

export function byId(id) { return document.getElementById(id); }

export function count(value) {
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 && value % 1 ? 1 : 0 });
}
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (value >= 1024 && unit < 3) { value /= 1024; unit += 1; }
  return (unit && value < 100 ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
}
export function millis(seconds) {
  if (seconds === null || seconds === undefined) { return "–"; }
  const ms = seconds * 1000;
  if (ms < 0.1) { return "< 0.1 ms"; }
  if (ms >= 1000) { return seconds.toFixed(1) + " s"; }
  return (ms < 10 ? ms.toFixed(1) : Math.round(ms)) + " ms";
}
export function age(seconds) {
  const value = Math.max(0, seconds);
  if (value < 120) { return Math.round(value) + " s"; }
  if (value < 7200) { return Math.round(value / 60) + " min"; }
  return value < 172800 ? Math.round(value / 3600) + " h" : Math.round(value / 86400) + " days";
}
export function many(number, one, more) { return count(number) + " " + (number === 1 ? one : more || one + "s"); }
// Where copies of a session are, which are those of its broker.
export function keptText(broker, kept) {
  if (!kept) { return "at no other process"; }
  const played = kept.host === broker ? "" : "played by " + shown(kept.host) + ", ";
  const at = kept.followers.map(shown).join(", ") || "nobody";
  return kept.whole < kept.wanted ? played + "at risk: " + kept.whole + " of " + kept.wanted + " copies whole (" + at + ")" : played + "copies at " + at;
}
export function clock(seconds, withSeconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", withSeconds === false
    ? { hour: "2-digit", minute: "2-digit" } : { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
export function shown(text) { return String(text).replace(HIDDEN, "·"); }

export function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) { made.textContent = text; }
  if (kind) { made.className = kind; }
  return made;
}
// Somebody's name: set apart from the words around it, whatever way it is written.
export function named(text, kind) {
  const made = element("bdi", shown(text), kind);
  made.title = shown(text);
  return made;
}
export function link(address, text, kind) {
  const made = element("a", undefined, kind);
  made.href = address;
  made.append(typeof text === "string" ? named(text) : text);
  return made;
}
export function clientAddress(client) { return "#/clients/" + encodeURIComponent(client); }
export function clientLink(client) { return link(clientAddress(client), client, "client"); }
export function drawn(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const key of Object.keys(attributes)) { made.setAttribute(key, attributes[key]); }
  if (parent) { parent.appendChild(made); }
  return made;
}
export function write(at, text) {
  const place = typeof at === "string" ? byId(at) : at;
  if (place.textContent !== text) { place.textContent = text; }
}
export function total(reports, field) { return reports.reduce(function (sum, one) { return sum + one[field]; }, 0); }
export function sumOf(table) { return Object.values(table).reduce(function (all, one) { return all + one; }, 0); }

// A row of a table; each cell is text or an element, and knows its column's name for narrow windows.
export function row(names, cells) {
  const made = element("tr");
  cells.forEach(function (cell, number) {
    const at = element("td");
    at.dataset.name = names[number];
    at.append(cell === null || cell === undefined ? "–" : cell);
    made.append(at);
  });
  return made;
}
// Fills a table's body, and leaves it alone where nothing changed, so that nobody loses their place.
export function fill(table, rows, nothing) {
  const body = table.tBodies[0];
  const wanted = rows.length ? rows : [emptyRow(table, nothing)];
  const before = Array.from(body.rows);
  const isSame = before.length === wanted.length &&
    before.every(function (one, number) { return one.isEqualNode(wanted[number]); });
  if (isSame) { return; }
  const focused = document.activeElement && body.contains(document.activeElement)
    ? document.activeElement.getAttribute("href") : null;
  body.replaceChildren(...wanted);
  if (focused) {
    const again = Array.from(body.querySelectorAll("a")).find(function (one) { return one.getAttribute("href") === focused; });
    if (again) { again.focus(); }
  }
}
function emptyRow(table, nothing) {
  const made = element("tr", undefined, "none");
  const cell = element("td", nothing);
  cell.colSpan = table.tHead.rows[0].cells.length;
  made.append(cell);
  return made;
}

// Where the broker answers: the page's own address, without a name and password that somebody wrote into it.
export function at(path) { return location.origin + location.pathname.replace(/[^/]*$/, "") + path; }
// Ask the broker; what it refuses is an Error with its own sentence.
export async function ask(path, given) {
  const query = new URLSearchParams(given || {}).toString();
  let answer;
  try {
    answer = await fetch(at(path) + (query ? "?" + query : ""), { cache: "no-store" });
  } catch (_) {
    throw new Error("The broker does not answer.");
  }
  let found = null;
  try { found = await answer.json(); } catch (_) { /* no JSON: said below */ }
  if (!answer.ok || found === null) {
    throw new Error(found && found.error ? found.error : "The broker answered with " + answer.status + ".");
  }
  return found;
}
export function missingText(missing) {
  return missing.length ? "No answer from " + missing.map(shown).join(", ") + "." : "";
}
