// Where a conversation is opened, and how the rest of a long one is reached from there.
import { closePanel } from "./panel.js";
import { announce, loadPage } from "./parts.js";

const turns = document.getElementById("turns");
const toNewest = document.querySelector("[data-to-newest]");
const MESSAGE = /^#m(\d+)$/;

/** Show the turn that the address names, else the last one: that is where the reader left. */
export function arrive() {
  addEventListener("hashchange", goToMessage);
  addEventListener("scroll", offerNewest, { passive: true });
  toNewest.addEventListener("click", goToNewest);
  if (location.hash) return goToMessage();
  const [visit] = performance.getEntriesByType("navigation");
  const isFresh = !visit || visit.type === "navigate"; // else the browser knows the place
  if (!isFresh || location.search || turns.querySelectorAll(".question").length < 2) return;
  lastQuestion().scrollIntoView({ block: "start", behavior: "instant" });
}

const lastQuestion = () => [...turns.querySelectorAll(".question")].at(-1);

/** Whoever reads far above the end is offered the way back. */
function offerNewest() {
  const below = document.documentElement.scrollHeight - innerHeight - scrollY;
  toNewest.hidden = below < 1.5 * innerHeight;
}

function goToNewest() {
  const newest = lastQuestion();
  newest.tabIndex = -1;
  newest.focus({ preventScroll: true });
  newest.scrollIntoView({ block: "start", behavior: "instant" });
}

/** A link to a message holds, however many turns came after it. */
function goToMessage() {
  const index = MESSAGE.exec(location.hash)?.[1];
  const isAsked = new URLSearchParams(location.search).get("at") === index;
  if (!index || isAsked || document.getElementById(`m${index}`)) return;
  location.replace(`${location.pathname}?at=${index}${location.hash}`);
}

/** Put the stretch that a link leads to before or after the turns that are shown. */
export async function showMore(link) {
  closePanel();
  const isEarlier = "earlier" in link.dataset;
  turns.setAttribute("aria-live", "off");
  try {
    const page = await loadPage(link.href);
    const more = [...page.getElementById("turns").children].filter((turn) => isWanted(turn, isEarlier));
    const height = document.documentElement.scrollHeight;
    link.parentElement.replaceWith(...more.map((turn) => document.adoptNode(turn)));
    if (isEarlier) scrollBy({ top: document.documentElement.scrollHeight - height, behavior: "instant" });
    readOn(more.filter((turn) => "message" in turn.dataset), isEarlier);
    turns.removeAttribute("aria-live");
  } catch {
    location.href = link.href;
  }
}

/** The note about summaries stands once; the way on is that of the farther end. */
function isWanted(turn, isEarlier) {
  if (turn.matches(".without-script") || turn.querySelector(isEarlier ? "[data-later]" : "[data-earlier]")) return false;
  if (!turn.matches(".kept")) return true;
  const note = turns.querySelector(".kept");
  if (note && !isEarlier) return false;
  note?.remove();
  return true;
}

/** The keyboard goes on where the link was: at the turn that is nearest to those read before. */
function readOn(messages, isEarlier) {
  const count = messages.filter((turn) => turn.matches(".question")).length;
  const nearest = isEarlier ? messages.at(-1) : messages[0];
  nearest?.focus({ preventScroll: true });
  announce(`${count} ${isEarlier ? "earlier" : "later"} turn${count === 1 ? " is" : "s are"} shown.`);
}
