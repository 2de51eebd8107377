// What stands behind a number, shown beside it while the mouse or the keyboard rests there.
import { partOf, wordsOf } from "./panel.js";

const peek = document.getElementById("peek");
const OPEN_MS = 250;
const CLOSE_MS = 200; // time to move onto it
const LONGEST_QUOTE = 320;
let opener = null; // the number that it is shown for
let awaited = null; // the one that it is about to be shown for
let timer = null;

export function startPeek() {
  if (!peek?.showPopover) return;
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return; // a tap opens the passage
    if (peek.contains(event.target)) return clearTimeout(timer);
    const link = numberAt(event.target);
    if (link) plan(link);
    else if (opener !== document.activeElement) hide(CLOSE_MS);
  });
  document.addEventListener("focusin", (event) => {
    const link = numberAt(event.target);
    if (link?.matches(":focus-visible")) plan(link);
    else hide(0);
  });
  document.addEventListener("click", () => hide(0));
  addEventListener("scroll", () => hide(0), { passive: true, capture: true });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !opener) return;
    event.preventDefault(); // it closes nothing else, and stops no answer
    event.stopImmediatePropagation();
    hide(0);
  }, { capture: true });
}

const numberAt = (target) => target.closest?.(".turns a.cite");

function plan(link) {
  clearTimeout(timer);
  awaited = link;
  if (link === opener || link.ariaExpanded === "true") return;
  timer = setTimeout(() => show(link), OPEN_MS);
}

function hide(after) {
  clearTimeout(timer);
  awaited = null;
  if (!opener) return;
  timer = setTimeout(() => {
    opener?.removeAttribute("aria-describedby");
    opener = null;
    peek.hidePopover();
  }, after);
}

async function show(link) {
  const part = await partOf(link.href, true).catch(() => null);
  if (!part || link !== awaited || !link.isConnected) return;
  opener?.removeAttribute("aria-describedby");
  opener = link;
  link.removeAttribute("title"); // a browser's own would cover this
  link.setAttribute("aria-describedby", "peek");
  peek.replaceChildren(...contents(part));
  peek.className = `peek ${part.className.replace("evidence", "")}`;
  peek.showPopover();
  place(link.getBoundingClientRect());
}

function contents(part) {
  const stated = [...part.querySelectorAll(".stated")].map((statement) => statement.cloneNode(true));
  const quote = Object.assign(document.createElement("blockquote"), { className: "peek-quote" });
  quote.append(...quotesIn(part));
  const where = Object.assign(document.createElement("p"), { className: "peek-place" });
  where.textContent = [wordsOf(part, ".evidence-title"), wordsOf(part, ".evidence-place")].filter(Boolean).join(" · ");
  return quote.hasChildNodes() ? [...stated, quote, where] : [...stated, where];
}

/** The sentences and rows that are marked, as many as are read at a glance. */
function quotesIn(part) {
  const lines = [];
  let length = 0;
  for (const passage of part.querySelectorAll(".document-text :is(mark, tr.is-marked), #result > p:first-child")) {
    length += passage.textContent.length;
    if (lines.length && length > LONGEST_QUOTE) break;
    const line = document.createElement("p");
    if (passage.matches("tr")) line.textContent = [...passage.cells].map((cell) => cell.textContent.trim()).join(" · ");
    else line.append(...passage.cloneNode(true).childNodes);
    lines.push(line);
  }
  return lines;
}

/** Below the number, or above it where there is more room. */
function place({ left, top, bottom }) {
  const { offsetWidth: width, offsetHeight: height } = peek;
  const isBelow = bottom + height + 12 < innerHeight || top < height + 12;
  peek.style.left = `${Math.max(8, Math.min(left - 16, innerWidth - width - 8))}px`;
  peek.style.top = `${isBelow ? bottom + 6 : top - height - 6}px`;
}
