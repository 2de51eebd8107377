// The evidence panel: beside the text where there is room, a sheet over it where there is none.
import { letScroll } from "./keys.js";
import { announce, loadPage } from "./parts.js";
import { showSheets } from "./sheet.js";

const panel = document.getElementById("panel");
const isWide = matchMedia("(min-width: 64rem)");
const cache = new Map(); // parts of pages that do not change, by address
let opener = null;

export function startPanel() {
  if (!panel) return;
  document.addEventListener("click", openOnClick);
  document.getElementById("panel-close").addEventListener("click", closePanel);
  panel.addEventListener("cancel", (event) => {
    event.preventDefault();
    closePanel();
  });
  panel.addEventListener("click", (event) => {
    if (event.target === panel) closePanel(); // beside the sheet
  });
  document.addEventListener("keydown", (event) => {
    const isElsewhere = event.defaultPrevented || event.target.closest?.("details.menu[open]");
    if (event.key !== "Escape" || !panel.open || isElsewhere) return;
    event.preventDefault(); // it is done with, and stops no answer
    closePanel();
  });
  isWide.addEventListener("change", () => panel.open && closePanel());
}

function openOnClick(event) {
  const link = event.target.closest("a[data-n], a[data-panel]");
  const isPlain = !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0;
  if (!link || !isPlain) return;
  event.preventDefault();
  showInPanel(link);
}

async function showInPanel(link, { isAgain = false } = {}) {
  const title = link.dataset.panel || `Source [${link.dataset.n}]`;
  const body = document.getElementById("panel-body");
  const isInside = panel.contains(link);
  mark(isInside ? null : link);
  head(title, "");
  document.getElementById("panel-link").href = link.href;
  if (!panel.open) {
    body.replaceChildren();
    open();
  }
  try {
    const part = await partOf(link.href, Boolean(link.dataset.n));
    body.replaceChildren(part.cloneNode(true));
    headEvidence(body, title);
    letScroll(body);
    showMark(body);
    document.body.classList.toggle("has-sheet", Boolean(body.querySelector("[data-sheet]"))); // it wants room
    showSheets(body);
    if (!isAgain) announce(`${title} is shown.`);
  } catch (error) {
    const note = Object.assign(document.createElement("p"), { textContent: error.message });
    note.className = "note is-error";
    body.replaceChildren(note);
  }
  if (!isAgain) document.getElementById("panel-title").focus({ preventScroll: true });
}

function head(title, place) {
  document.getElementById("panel-title").className = "";
  document.getElementById("panel-title").textContent = title;
  document.getElementById("panel-place").textContent = place;
}

/** A passage is headed by the statement that it stands behind, if it is one. */
function headEvidence(body, title) {
  const [name, place] = [wordsOf(body, ".evidence-title") || title, wordsOf(body, ".evidence-place")];
  const stated = body.querySelectorAll(".stated");
  if (stated.length !== 1) return head(name, place);
  head("", [name, place].filter(Boolean).join(" · "));
  document.getElementById("panel-title").append(...stated[0].childNodes);
  document.getElementById("panel-title").className = stated[0].className;
  stated[0].remove();
}

export const wordsOf = (body, part) => body.querySelector(part)?.textContent.replace(/\s+/g, " ").trim() ?? "";

function mark(link) {
  document.querySelectorAll("[aria-expanded][data-n], [aria-expanded][data-panel]").forEach((button) => button.removeAttribute("aria-expanded"));
  if (!link) return;
  opener = link;
  link.setAttribute("aria-expanded", "true");
}

export async function partOf(url, isEvidence) {
  if (isEvidence && cache.has(url)) return cache.get(url);
  const part = (await loadPage(url)).getElementById("part");
  if (!part) throw new Error("This page could not be shown here. Open it as a page.");
  const adopted = document.adoptNode(part);
  adopted.removeAttribute("id");
  cache.set(url, adopted);
  return adopted;
}

/** The passage stands in the upper third, with what comes before it in sight. */
function showMark(body) {
  const passage = body.querySelector("#passage");
  body.scrollTop = 0;
  if (!passage) return;
  const distance = passage.getBoundingClientRect().top - body.getBoundingClientRect().top;
  body.scrollTop = Math.max(0, distance - body.clientHeight / 3);
}

function open() {
  if (isWide.matches) {
    panel.show();
    document.body.classList.add("has-panel");
  } else {
    panel.showModal();
  }
}

export function closePanel() {
  if (!panel?.open) return;
  // The link itself, or the one that took its place when the answer was finished.
  const marked = document.querySelector('a[aria-expanded="true"]');
  const target = opener?.isConnected ? opener : marked ?? document.getElementById("question");
  panel.close();
  document.body.classList.remove("has-panel", "has-sheet");
  mark(null);
  opener = null;
  target?.focus();
}

/** What is known of the evidence may be another now. */
export function renewEvidence() {
  cache.clear();
  if (panel?.open && opener?.isConnected) showInPanel(opener, { isAgain: true });
}
