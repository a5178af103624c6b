// Explanations: whatever has data-hint shows it in one bubble while it is pointed at or has the focus; Escape
// takes it away. Screen readers are told the same by aria-describedby.
import { byId } from "./words.js";

const GAP = 8;
let about = null;

function hide() {
  if (about) { about.removeAttribute("aria-describedby"); }
  about = null;
  byId("hint").hidden = true;
}
function show(at) {
  const bubble = byId("hint");
  about = at;
  bubble.textContent = at.dataset.hint;
  bubble.hidden = false;
  at.setAttribute("aria-describedby", "hint");
  const box = at.getBoundingClientRect(), size = bubble.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const left = Math.max(GAP, Math.min(box.left, width - size.width - GAP));
  const above = box.top - size.height - GAP;
  bubble.style.left = left + "px";
  bubble.style.top = (above > GAP ? above : box.bottom + GAP) + "px";
}
function hinted(target) { return target instanceof Element ? target.closest("[data-hint]") : null; }

export function explain(at, text) {
  at.dataset.hint = text;
  if (!at.matches("a, button, input, select, textarea, [tabindex]")) { at.tabIndex = 0; }
  return at;
}
export function startHints() {
  for (const at of document.querySelectorAll("[data-hint]")) { explain(at, at.dataset.hint); }
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, function (event) {
      const at = hinted(event.target);
      if (at && at !== about) { hide(); show(at); } else if (!at && kind === "focusin") { hide(); }
    });
  }
  document.addEventListener("pointerout", function (event) {
    if (about && hinted(event.target) === about && hinted(event.relatedTarget) !== about &&
      document.activeElement !== about) { hide(); }
  });
  document.addEventListener("focusout", function (event) { if (event.target === about) { hide(); } });
  document.addEventListener("keydown", function (event) { if (event.key === "Escape" && about) { hide(); } });
  // What has the focus keeps its explanation while the page moves, perhaps because of the focus.
  window.addEventListener("scroll", function () {
    if (about && about === document.activeElement) { show(about); } else { hide(); }
  }, { passive: true, capture: true });
}
