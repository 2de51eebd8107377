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
  form.addEventListener("drop", (event) => send([...event.dataTransfer.files]));
  poll();
}

function over(event, isOver) {
  event.preventDefault();
  form.classList.toggle("is-over", isOver);
}

function send(files) {
  if (!files.length) return;
  const body = new FormData();
  files.forEach((file) => body.append("file", file));
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
  const old = document.getElementById("library");
  const fresh = page.getElementById("library");
  if (!old.contains(document.activeElement)) {
    takeParts(page);
    return;
  }
  old.dataset.running = fresh.dataset.running;
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
