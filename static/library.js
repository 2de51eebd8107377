// The library's page: what is on its way is looked at until it has come; rows are ticked together.
import { takeParts } from "./morph.js";
import { loadPage } from "./parts.js";
import { read, write } from "./storage.js";

const POLL_MS = 700;
let isWatching = false;

export function startLibrary() {
  if (!document.getElementById("library")) return;
  document.addEventListener("click", (event) => event.target.closest("[data-dismiss]") && dismiss());
  document.addEventListener("change", (event) => event.target.matches("[data-all]") && tickAll(event.target.checked));
  hideDismissed();
  if (isRunning()) watchLibrary();
}

const isRunning = () => Number(document.getElementById("library").dataset.running);

function tickAll(isTicked) {
  for (const box of document.querySelectorAll("[form=chosen][name=document]")) box.checked = isTicked;
}

/** Show what is there now, and go on while something is on its way. */
export async function watchLibrary() {
  await refresh();
  if (isWatching) return;
  isWatching = true;
  while (isRunning()) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    await refresh();
  }
  isWatching = false;
}

async function refresh() {
  const page = await loadPage(location.href).catch(() => null);
  if (!page?.getElementById("library")) return;
  hideDismissed(page);
  takeParts(page);
}

/** What failed was seen; what fails later is shown again. */
function dismiss() {
  write("localStorage", "dismissed", document.querySelector("[data-failed]").dataset.failed);
  hideDismissed();
  document.getElementById("files").focus();
}

function hideDismissed(page = document) {
  const failed = page.querySelector("[data-failed]");
  if (failed && failed.dataset.failed <= read("localStorage", "dismissed")) failed.remove();
}
