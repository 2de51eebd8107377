// The one way in which parts of a page give way to what the server shows now.
import { Idiomorph } from "./idiomorph.js";

/** What a reader or a script has set, and the server knows nothing of. */
const isOurs = (name, element) => name === "style" || name === "aria-expanded" || (name === "open" && element.matches("details"));

/** Make an element what the server shows; where the reader is and what he has opened stays. */
export function morph(old, fresh, morphStyle = "outerHTML") {
  keepChoices(old, fresh);
  Idiomorph.morph(old, fresh, {
    morphStyle,
    ignoreActiveValue: true,
    callbacks: {
      beforeNodeMorphed: (before, after) => !before.isEqualNode(after),
      beforeAttributeUpdated: (name, element) => !isOurs(name, element),
    },
  });
}

/** The parts of a page that are marked for it. */
export function takeParts(page) {
  for (const fresh of page.querySelectorAll("[data-part]")) {
    const old = document.getElementById(fresh.id);
    if (old) morph(old, fresh);
  }
}

/** What was ticked and chosen stays so. */
function keepChoices(old, fresh) {
  const ticked = new Set([...old.querySelectorAll("input:checked")].map(keyOf));
  for (const box of fresh.querySelectorAll("[type=checkbox]")) box.checked = ticked.has(keyOf(box));
  const chosen = new Map([...old.querySelectorAll("select")].map((list) => [list.name, list.value]));
  for (const list of fresh.querySelectorAll("select")) {
    const value = chosen.get(list.name);
    if ([...list.options].some((option) => option.value === value)) list.value = value;
  }
}

const keyOf = (box) => `${box.name} ${box.value}`;

/** An answer while it is written: what stands already is kept, only the last block changes. */
export function showLive(root, html) {
  morph(root, new DOMParser().parseFromString(html, "text/html").body, "innerHTML");
}
