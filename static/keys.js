// What the keyboard can do on every page, and the printer.

const FIELDS = ["question", "filter", "search-page", "search-all"]; // the first that is in sight

/** A stroke on / leads to where one writes, as long as nobody is writing. */
export function takeShortcuts() {
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) return openPalette(event);
    if (event.key === "?" && !isTaken(event.target)) return document.getElementById("keys")?.showModal();
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target)) return;
    const field = FIELDS.map((id) => document.getElementById(id)).find((element) => element?.checkVisibility());
    if (!field) return;
    event.preventDefault();
    field.focus();
  });
}

// ── Go to ────────────────────────────────────────────────────────────────────────────────────

function openPalette(event) {
  const palette = document.getElementById("palette");
  if (!palette || document.querySelector("dialog:modal")) return;
  event.preventDefault();
  palette.showModal();
  if (!palette.dataset.begun) beginPalette(palette);
  palette.querySelector("input").select();
  listPlaces(palette);
}

function beginPalette(palette) {
  palette.dataset.begun = "";
  const query = palette.querySelector("input");
  query.addEventListener("input", () => listPlaces(palette));
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") return go(chosenPlace(palette));
    if (!["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const places = [...palette.querySelectorAll("li")];
    const next = places.indexOf(chosenPlace(palette)) + (event.key === "ArrowDown" ? 1 : -1);
    choosePlace(palette, places[(next + places.length) % places.length]);
  });
  palette.querySelector("ul").addEventListener("click", (event) => go(event.target.closest("li")));
}

async function listPlaces(palette) {
  const query = palette.querySelector("input").value;
  const answer = await fetch(`${palette.dataset.url}?q=${encodeURIComponent(query)}`, { headers: { Accept: "application/json" } });
  if (!answer.ok || palette.querySelector("input").value !== query) return; // a newer look is on its way
  const places = (await answer.json()).places.map(placeRow);
  palette.querySelector("ul").replaceChildren(...places);
  choosePlace(palette, places[0]);
}

function placeRow({ kind, name, url }, index) {
  const row = Object.assign(document.createElement("li"), { id: `place-${index}`, role: "option" });
  const label = Object.assign(document.createElement("span"), { className: "quiet", textContent: kind });
  row.append(name, label);
  row.dataset.url = url;
  return row;
}

function choosePlace(palette, place) {
  for (const entry of palette.querySelectorAll("li")) entry.ariaSelected = String(entry === place);
  palette.querySelector("input").setAttribute("aria-activedescendant", place?.id ?? "");
  place?.scrollIntoView({ block: "nearest" });
}

const chosenPlace = (palette) => palette.querySelector('li[aria-selected="true"]');
const go = (place) => place && location.assign(place.dataset.url);

export function printOnClick() {
  document.querySelector("[data-print]")?.addEventListener("click", () => print());
}

const isTaken = (target) => target.closest("input, textarea, select, dialog:modal");

/** What can be scrolled sideways can be reached without a mouse in every browser. */
export function letScroll(root) {
  for (const block of root.querySelectorAll("pre, .prose table, .table, .picture")) {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
  }
}
