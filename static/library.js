// The library's page: files can be dropped, sending and reading show how far they are.
import { announce, csrfToken, loadPage, takeParts } from "./parts.js";

const form = document.querySelector("[data-upload]");
const POLL_MS = 700;
let isPolling = false;

export function startLibrary() {
  if (!form) return;
  const field = form.querySelector("[type=file]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send([...field.files]);
  });
  field.addEventListener("change", () => send([...field.files]));
  for (const name of ["dragenter", "dragover"]) form.addEventListener(name, (event) => over(event, true));
  for (const name of ["dragleave", "drop"]) form.addEventListener(name, (event) => over(event, false));
  form.addEventListener("drop", async (event) => send(await dropped(event.dataTransfer)));
  poll();
}

function over(event, isOver) {
  event.preventDefault();
  form.classList.toggle("is-over", isOver);
}

/** Files as they were dropped; those of folders keep their path as their name. */
async function dropped(transfer) {
  const plain = [...transfer.files];
  const entries = [...transfer.items].map((each) => each.webkitGetAsEntry?.());
  if (!entries.some((each) => each?.isDirectory)) return plain;
  const found = await Promise.all(entries.map((each) => filesIn(each)));
  return found.flat();
}

async function filesIn(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [Object.assign(file, { path: entry.fullPath.replace(/^\//, "") })];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) { // a folder is handed out in portions, until an empty one
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    for (const each of some) if (!each.name.startsWith(".")) found.push(...(await filesIn(each)));
  }
}

function send(files) {
  if (!files.length) return;
  const body = new FormData();
  files.forEach((file) => body.append("file", file, file.path ?? file.name));
  const request = new XMLHttpRequest(); // fetch cannot tell how much was sent
  request.upload.addEventListener("progress", (event) => showSending(event.loaded / event.total));
  request.addEventListener("load", () => sent(request, files.length));
  request.addEventListener("error", () => showRefused([{ document: "", reason: "The files could not be sent: the server did not answer. Try again." }]));
  request.addEventListener("loadend", () => {
    form.querySelector("[data-sending]").hidden = true;
    form.reset();
  });
  request.open("POST", "/api/v1/documents");
  request.setRequestHeader("X-CSRF-Token", csrfToken());
  request.responseType = "json";
  showSending(0);
  request.send(body);
}

function showSending(share) {
  const sending = form.querySelector("[data-sending]");
  sending.hidden = false;
  sending.querySelector("progress").value = Math.round(100 * share);
  sending.querySelector("span").textContent = `Sending ${Math.round(100 * share)} %`;
}

function sent(request, count) {
  const answer = request.response ?? {};
  if (request.status === 202) {
    showRefused(answer.refused ?? []);
    announce(`${answer.jobs.length} of ${count} files are on their way.`);
  } else {
    const errors = (answer.errors ?? []).map((each) => ({ document: each.field, reason: each.detail }));
    showRefused(errors.length ? errors : [{ document: "", reason: answer.detail ?? `The server answered ${request.status}.` }]);
  }
  refresh().then(poll);
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
  const { running } = page.getElementById("library").dataset;
  takeParts(page); // not the list while somebody is at work in it
  document.getElementById("library").dataset.running = running;
}

async function poll() {
  if (isPolling) return;
  isPolling = true;
  while (Number(document.getElementById("library").dataset.running)) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    await refresh();
  }
  isPolling = false;
}
