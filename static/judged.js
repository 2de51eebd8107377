// What a judge says of an answer that stands already: its article gives way to the server's.
import { letScroll } from "./keys.js";
import { morph } from "./morph.js";
import { renewEvidence } from "./panel.js";
import { announce, loadPage } from "./parts.js";

const LOOK_MS = 2000; // between two looks for a judge's word
const MOST_LOOKS = 150;

/** The stream of an answer may go on with it; meanwhile anything can be asked. */
export async function waitForJudge(stream) {
  try {
    for (let next = await stream.next(); !next.done; next = await stream.next()) {
      if (next.value.name === "judged") await showJudged(next.value.values.index);
    }
  } catch {
    // It is shown when the page is loaded again.
  }
}

/** A page that comes while a judge is at work shows its word, too. */
export async function lookForJudge() {
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const note = document.querySelector("#turns [data-judging]");
    if (!note) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const answer = note.isConnected && note.closest(".answer");
    if (answer) await showJudged(Number(answer.id.slice(1))).catch(() => null);
  }
}

async function showJudged(index) {
  // The head of a new conversation may not be there yet; its address is.
  const fresh = (await loadPage(location.pathname)).getElementById(`m${index}`);
  const article = document.getElementById(`m${index}`);
  if (!fresh || !article || article.classList.contains("is-live")) return;
  const isNews = !article.isEqualNode(fresh) && !fresh.querySelector("[data-judging]");
  morph(article, fresh);
  letScroll(article);
  if (!isNews) return;
  renewEvidence();
  announce(`The statements are checked. ${warningsIn(article)}`.trim());
}

/** How many statements are not as their sources say. */
export function warningsIn(answer) {
  const count = answer.querySelectorAll(".warning").length;
  return count ? `Warning: ${count} statement${count === 1 ? " does" : "s do"} not agree with the sources.` : "";
}
