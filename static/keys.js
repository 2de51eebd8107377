// What the keyboard can do on every page, and the printer.

const FIELDS = ["question", "filter", "search-page", "search-all"]; // the first that is in sight

/** A stroke on / leads to where one writes, as long as nobody is writing. */
export function takeShortcuts() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target)) return;
    const field = FIELDS.map((id) => document.getElementById(id)).find((each) => each?.checkVisibility());
    if (!field) return;
    event.preventDefault();
    field.focus();
  });
}

export function printOnClick() {
  document.querySelector("[data-print]")?.addEventListener("click", () => print());
}

const isTaken = (target) => target.closest("input, textarea, select, dialog:modal");

/** What can be scrolled sideways can be reached without a mouse in every browser. */
export function letScroll(root) {
  for (const each of root.querySelectorAll("pre, .prose table, .table, .picture")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
  }
}
