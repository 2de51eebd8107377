// What stands behind a number, shown beside it while the mouse or the keyboard rests there.
import { partOf, wordsOf } from "./panel.js";

const peek = document.getElementById("peek");
const OPEN_MS = 250;
const CLOSE_MS = 200; // time to move onto it
const LONGEST_QUOTE = 320;
let shown = null; // the number that it is shown for
let wanted = null; // the one that it is about to be shown for
let timer = null;

export function startPeek() {
  if (!peek?.showPopover) return;
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return; // a tap opens the passage
    if (peek.contains(event.target)) return clearTimeout(timer);
    const link = numberAt(event.target);
    if (link) plan(link);
    else if (shown !== document.activeElement) hide(CLOSE_MS);
  });
  document.addEventListener("focusin", (event) => {
    const link = numberAt(event.target);
    if (link?.matches(":focus-visible")) plan(link);
    else hide(0);
  });
  document.addEventListener("click", () => hide(0));
  addEventListener("scroll", () => hide(0), { passive: true, capture: true });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !shown) return;
    event.preventDefault(); // it closes nothing else, and stops no answer
    event.stopImmediatePropagation();
    hide(0);
  }, { capture: true });
}

const numberAt = (target) => target.closest?.(".turns a.cite");

function plan(link) {
  clearTimeout(timer);
  wanted = link;
  if (link === shown || link.ariaExpanded === "true") return;
  timer = setTimeout(() => show(link), OPEN_MS);
}

function hide(after) {
  clearTimeout(timer);
  wanted = null;
  if (!shown) return;
  timer = setTimeout(() => {
    shown?.removeAttribute("aria-describedby");
    shown = null;
    peek.hidePopover();
  }, after);
}

async function show(link) {
  const part = await partOf(link.href, true).catch(() => null);
  if (!part || link !== wanted || !link.isConnected) return;
  shown?.removeAttribute("aria-describedby");
  shown = link;
  link.removeAttribute("title"); // a browser's own would cover this
  link.setAttribute("aria-describedby", "peek");
  peek.replaceChildren(...contents(part));
  peek.className = `peek ${part.className.replace("evidence", "")}`;
  peek.showPopover();
  place(link.getBoundingClientRect());
}

function contents(part) {
  const stated = [...part.querySelectorAll(".stated")].map((each) => each.cloneNode(true));
  const quote = Object.assign(document.createElement("blockquote"), { className: "peek-quote" });
  quote.append(...quotesIn(part));
  const where = Object.assign(document.createElement("p"), { className: "peek-place" });
  where.textContent = [wordsOf(part, ".evidence-title"), wordsOf(part, ".evidence-place")].filter(Boolean).join(" · ");
  return quote.hasChildNodes() ? [...stated, quote, where] : [...stated, where];
}

/** The sentences and rows that are marked, as many as are read at a glance. */
function quotesIn(part) {
  const found = [];
  let length = 0;
  for (const each of part.querySelectorAll(".document-text :is(mark, tr.is-marked), #result > p:first-child")) {
    length += each.textContent.length;
    if (found.length && length > LONGEST_QUOTE) break;
    const line = document.createElement("p");
    if (each.matches("tr")) line.textContent = [...each.cells].map((cell) => cell.textContent.trim()).join(" · ");
    else line.append(...each.cloneNode(true).childNodes);
    found.push(line);
  }
  return found;
}

/** Below the number, or above it where there is more room. */
function place({ left, top, bottom }) {
  const { offsetWidth: width, offsetHeight: height } = peek;
  const isBelow = bottom + height + 12 < innerHeight || top < height + 12;
  peek.style.left = `${Math.max(8, Math.min(left - 16, innerWidth - width - 8))}px`;
  peek.style.top = `${isBelow ? bottom + 6 : top - height - 6}px`;
}
