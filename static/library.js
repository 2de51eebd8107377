// The library's page: sending and reading show how far they are.
import { takeFilesAnywhere } from "./dropping.js";
import { takeParts } from "./morph.js";
import { announce, loadPage } from "./parts.js";
import { read, write } from "./storage.js";
import { sendFiles } from "./upload.js";

const form = document.querySelector("[data-upload]");
const POLL_MS = 700;
let isPolling = false;

export function startLibrary() {
  if (!form) return;
  const field = form.querySelector("[type=file]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.files.length) send([...field.files]);
  });
  field.addEventListener("change", () => field.files.length && send([...field.files]));
  takeFilesAnywhere(send);
  document.addEventListener("click", (event) => event.target.closest("[data-dismiss]") && dismiss());
  document.addEventListener("change", (event) => event.target.matches("[data-all]") && tickAll(event.target.checked));
  hideDismissed();
  poll();
}

function tickAll(isTicked) {
  for (const box of document.querySelectorAll("[form=chosen][name=document]")) box.checked = isTicked;
}

/** Send files and show in the page how far they are. */
async function send(files) {
  const sent = await sendFiles(files, showSending);
  form.querySelector("[data-sending]").hidden = true;
  form.reset();
  showRefused(sent.refused);
  if (sent.jobs.length) announce(`${sent.jobs.length} of ${files.length} files are on their way.`);
  await refresh();
  poll();
}

function showSending(share) {
  const sending = form.querySelector("[data-sending]");
  sending.hidden = false;
  sending.querySelector("progress").value = Math.round(100 * share);
  sending.querySelector("span").textContent = `Sending ${Math.round(100 * share)} %`;
}

function showRefused(files) {
  const place = document.getElementById("refused");
  place.replaceChildren();
  if (!files.length) return;
  const list = Object.assign(document.createElement("ul"), { className: "problems" });
  for (const file of files) {
    const entry = document.createElement("li");
    const name = document.createElement("b");
    name.textContent = file.document;
    entry.append(name, ` ${file.reason}`);
    list.append(entry);
  }
  place.append(list);
}

async function refresh() {
  const page = await loadPage(location.href).catch(() => null);
  if (!page) return;
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

async function poll() {
  if (isPolling) return;
  isPolling = true;
  let isNews = false;
  while (Number(document.getElementById("library").dataset.running)) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    await refresh();
    isNews = true;
  }
  if (isNews) announce(`All files are read. ${document.querySelector("#library h2")?.textContent ?? ""}`);
  isPolling = false;
}
