// Files may be dropped or pasted on any page; without that a browser would leave the page for them.
import { dropped } from "./upload.js";

const veil = Object.assign(document.createElement("div"), { className: "veil", hidden: true });

/** Call `send` with files that are dropped anywhere on the page, or pasted. */
export function takeFilesAnywhere(send) {
  veil.append(Object.assign(document.createElement("p"), { textContent: "Drop to add to the library" }));
  document.body.append(veil);
  for (const name of ["dragenter", "dragover"]) document.addEventListener(name, show);
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) veil.hidden = true; // out of the window, not only into another part
  });
  document.addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    veil.hidden = true;
    const files = await dropped(event.dataTransfer);
    if (files.length) send(files);
  });
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    const isText = event.clipboardData.types.includes("text/plain"); // cells come as a picture, too
    if (files.length && !isText) send(files);
  });
}

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

function show(event) {
  if (!hasFiles(event)) return; // a word that is dragged into a field goes its way
  event.preventDefault();
  veil.hidden = false;
}
