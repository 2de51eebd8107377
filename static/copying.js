// Answers and passages are copied as Markdown and as rich text, with warnings and sources.
import { announce } from "./parts.js";

const labels = new WeakMap(); // of buttons, as they were
const KEPT = new Set(["href", "start", "colspan", "rowspan"]); // attributes that mean something elsewhere

/** Links to answers are copied as they can be sent to others. */
export function copyOnClick() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-link]");
    if (!button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    const isLink = "link" in button.dataset;
    const done = isLink ? await copy(button.href) : await copy(markdownOf(button), richOf(button));
    const label = button.lastChild;
    if (!labels.has(button)) labels.set(button, label.textContent); // not "Copied", when clicked twice
    label.textContent = done ? " Copied" : " Could not copy";
    announce(done ? `Copied${isLink ? "" : " with its sources"}.` : "The browser refused to copy.");
    setTimeout(() => (label.textContent = labels.get(button)), 2000);
  });
}

const markdownOf = ({ dataset }) => [dataset.copy, dataset.sources].filter(Boolean).join("\n\n");

/** What the page shows of an answer, or the text of a passage; then the sources, a line each. */
function richOf(button) {
  const made = document.createElement("div");
  const parts = button.closest(".answer")?.querySelectorAll(".prose, .answer-card, .result-rows table");
  for (const part of parts ?? []) made.append(bare(part.cloneNode(true)));
  if (!parts) made.append(lines("blockquote", button.dataset.copy));
  if (button.dataset.sources) made.append(lines("p", button.dataset.sources));
  return made.innerHTML;
}

function lines(name, text) {
  const made = document.createElement(name);
  for (const line of text.split("\n")) made.append(line, document.createElement("br"));
  made.lastChild.remove();
  return made;
}

/** Without what only this page knows how to show. */
function bare(root) {
  for (const node of root.querySelectorAll(".hidden, .icon, button")) node.remove();
  for (const node of root.querySelectorAll(".cite")) node.replaceWith(node.textContent);
  for (const node of root.querySelectorAll(".warning")) node.replaceWith(note(`(⚠ ${node.textContent.trim()})`));
  for (const node of root.querySelectorAll(".no-source, .unfound")) node.replaceWith(note(`(${node.textContent})`));
  for (const node of root.querySelectorAll("span")) node.replaceWith(...node.childNodes);
  for (const node of [root, ...root.querySelectorAll("*")]) {
    if (node.href) node.setAttribute("href", node.href); // whole, so that it leads here from anywhere
    for (const name of node.getAttributeNames()) if (!KEPT.has(name)) node.removeAttribute(name);
  }
  return root;
}

const note = (text) => Object.assign(document.createElement("em"), { textContent: text });

/** A picture that the server draws as SVG, saved as PNG at twice its size. */
export function savePng() {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("[data-png]");
    if (!link) return;
    event.preventDefault();
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await (await fetch(link.href)).text())}`;
    await picture.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * picture.width, height: 2 * picture.height });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((png) => Object.assign(document.createElement("a"), { href: URL.createObjectURL(png), download: link.download }).click(), "image/png");
  });
}

async function copy(text, html = "") {
  const types = { "text/plain": text, ...(html && { "text/html": html }) };
  const blobs = Object.entries(types).map(([type, words]) => [type, new Blob([words], { type })]);
  try {
    await navigator.clipboard.write([new ClipboardItem(Object.fromEntries(blobs))]);
    return true;
  } catch {
    return copyByHand(types); // no clipboard, or refused, for instance in a frame
  }
}

function copyByHand(types) {
  const fill = (event) => {
    event.preventDefault();
    for (const [type, words] of Object.entries(types)) event.clipboardData.setData(type, words);
  };
  document.addEventListener("copy", fill, { once: true });
  const done = document.execCommand("copy");
  document.removeEventListener("copy", fill);
  return done;
}
