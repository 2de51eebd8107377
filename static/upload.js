// Files on their way to the library: taken up from wherever they were dropped, and sent.
import { csrfToken } from "./parts.js";

/** Files as they were dropped; those of folders keep their path as their name. */
export async function dropped(transfer) {
  const plain = [...transfer.files];
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.());
  if (!entries.some((entry) => entry?.isDirectory)) return plain;
  const files = await Promise.all(entries.map((entry) => filesIn(entry)));
  return files.flat();
}

async function filesIn(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [Object.assign(file, { path: entry.fullPath.replace(/^\//, "") })];
  }
  const reader = entry.createReader();
  const files = [];
  for (;;) { // a folder is handed out in portions, until an empty one
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return files;
    for (const entry of some) if (!entry.name.startsWith(".")) files.push(...(await filesIn(entry)));
  }
}

/** Send files; `onShare` hears how much of them is gone. Resolves to {jobs, refused}, never rejects. */
export function sendFiles(files, onShare) {
  const body = new FormData();
  files.forEach((file) => body.append("file", file, file.path ?? file.name));
  const collection = document.querySelector("form[data-upload]")?.dataset.collection; // that the page shows
  if (collection) body.append("collection", collection);
  const request = new XMLHttpRequest(); // fetch cannot tell how much was sent
  request.open("POST", "/api/v1/documents");
  request.setRequestHeader("X-CSRF-Token", csrfToken());
  request.responseType = "json";
  onShare(0);
  return new Promise((resolve) => {
    request.upload.addEventListener("progress", (event) => onShare(event.loaded / event.total));
    request.addEventListener("load", () => resolve(outcome(request)));
    request.addEventListener("error", () => resolve(failed("The files could not be sent: the server did not answer. Try again.")));
    request.send(body);
  });
}

const failed = (reason) => ({ jobs: [], refused: [{ document: "", reason }] });

function outcome(request) {
  const answer = request.response ?? {};
  if (request.status === 202) return { jobs: answer.jobs, refused: answer.refused ?? [] };
  const errors = (answer.errors ?? []).map((error) => ({ document: error.field, reason: error.detail }));
  return errors.length ? { jobs: [], refused: errors } : failed(answer.detail ?? `The server answered ${request.status}.`);
}
