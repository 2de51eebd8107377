// A page of a PDF as it was printed, with the passage marked on it.
const NEIGHBOURS = [0, 1, -1]; // a passage may go on over a page's end
const FEWEST_CHARS = 16; // letters and figures of a stretch that cannot have met by chance
const LARGER = 1.8;
const AIR = 12; // points

/** Show the pages that a document names; where that fails their text stands there as it was. */
export async function showSheets(root) {
  for (const sheet of root.querySelectorAll("[data-sheet]:not([data-is-shown])")) {
    sheet.dataset.isShown = "";
    try {
      await showSheet(sheet);
      sheet.parentElement.querySelector(".as-text").open = false;
    } catch {
      sheet.hidden = false;
      sheet.replaceChildren(remark("The page cannot be shown here. This is its text."));
    }
  }
}

async function showSheet(sheet) {
  const pdf = await opened(sheet.dataset.sheet);
  const { page, spans, isMarked } = await markedPage(pdf, sheet);
  sheet.hidden = false;
  const view = Object.assign(document.createElement("div"), { className: "sheet-view", tabIndex: 0 });
  view.setAttribute("role", "group");
  view.ariaLabel = sheet.ariaLabel;
  const size = Object.assign(document.createElement("button"), { className: "link", type: "button", textContent: "Larger" });
  const caption = document.createElement("figcaption");
  caption.append(`Page ${page.pageNumber} of ${pdf.numPages} `, size);
  sheet.replaceChildren(view, caption);
  await draw(view, page, spans, 1);
  if (JSON.parse(sheet.dataset.marked).length && !isMarked) caption.after(remark("The passage could not be marked on this page; its text is below."));
  size.addEventListener("click", async () => {
    const isLarger = size.textContent === "Larger";
    size.textContent = isLarger ? "Smaller" : "Larger";
    await draw(view, page, spans, isLarger ? LARGER : 1);
    toMark(view);
  });
  toMark(view);
}

/** With its margins out of sight, and the passage in it. */
function toMark(view) {
  view.scrollLeft = view.dataset.margin;
  const mark = view.querySelector("mark") ?? view;
  mark.scrollIntoView({ block: view === mark ? "start" : "center", inline: "nearest", behavior: "instant" });
}

const remark = (text) => Object.assign(document.createElement("p"), { className: "quiet", textContent: text });

// ── The file ──

let last = { url: "", pdf: null }; // one is kept: its passages are opened one after the other

async function library() {
  const home = new URL("./pdfjs/", import.meta.url).href;
  const pdfjs = await import(`${home}pdf.min.mjs`);
  pdfjs.GlobalWorkerOptions.workerSrc = `${home}pdf.worker.min.mjs`;
  return { pdfjs, home };
}

async function opened(url) {
  if (last.url === url) return last.pdf;
  const { pdfjs, home } = await library();
  last.pdf?.destroy();
  const pdf = await pdfjs.getDocument({
    url,
    cMapUrl: `${home}cmaps/`,
    wasmUrl: home,
    useWasm: false, // our policy lets no machine code in
    enableXfa: false,
    isEvalSupported: false,
    verbosity: 0,
  }).promise;
  last = { url, pdf };
  return pdf;
}

/** The page that is named or the one beside it, whichever has the passage. */
async function markedPage(pdf, sheet) {
  const passages = JSON.parse(sheet.dataset.marked);
  const tried = [];
  for (const step of NEIGHBOURS) {
    const number = Number(sheet.dataset.page) + step;
    if (number < 1 || number > pdf.numPages) continue;
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    const spans = marksIn(items.map((item) => item.str ?? ""), passages);
    const isMarked = spans.some((marks) => marks.length);
    if (isMarked || !passages.length) return { page, spans, isMarked };
    tried.push({ page, spans, isMarked });
  }
  return tried[0];
}

/** Draws so that the lines fill the width that there is, times so much. */
async function draw(view, page, spans, times) {
  const { pdfjs } = await library();
  const content = await page.getTextContent();
  const { left, width } = printed(page, content.items);
  const scale = (times * view.clientWidth) / width;
  view.dataset.margin = left * scale;
  const viewport = page.getViewport({ scale });
  const sharp = Math.min(devicePixelRatio || 1, 2);
  const canvas = Object.assign(document.createElement("canvas"), { width: viewport.width * sharp, height: viewport.height * sharp });
  const layer = Object.assign(document.createElement("div"), { className: "textLayer" });
  const paper = Object.assign(document.createElement("div"), { className: "sheet-paper" });
  paper.style.width = canvas.style.width = `${viewport.width}px`;
  paper.style.height = canvas.style.height = `${viewport.height}px`;
  paper.style.setProperty("--total-scale-factor", scale);
  canvas.ariaHidden = "true";
  paper.append(canvas, layer);
  view.replaceChildren(paper);
  const transform = sharp === 1 ? null : [sharp, 0, 0, sharp, 0, 0];
  await page.render({ canvas, canvasContext: canvas.getContext("2d"), viewport, transform }).promise;
  const text = new pdfjs.TextLayer({ textContentSource: content, container: layer, viewport });
  await text.render();
  text.textDivs.forEach((div, position) => markIn(div, spans[position] ?? []));
}

/** From the first letter of a page to its last across, with a little air around. */
function printed(page, items) {
  const { width, rotation } = page.getViewport({ scale: 1 });
  const lines = rotation ? [] : items.filter((item) => item.str?.trim() && item.transform[1] === 0);
  const left = Math.max(0, Math.min(...lines.map((line) => line.transform[4])) - AIR);
  const right = Math.min(width, Math.max(...lines.map((line) => line.transform[4] + line.width)) + AIR);
  return right - left > width / 3 ? { left, width: right - left } : { left: 0, width };
}

function markIn(div, spans) {
  if (!spans.length) return;
  const text = div.textContent;
  const parts = [];
  let position = 0;
  for (const [start, end] of spans) {
    parts.push(text.slice(position, start), Object.assign(document.createElement("mark"), { textContent: text.slice(start, end) }));
    position = end;
  }
  div.replaceChildren(...parts, text.slice(position));
}

// ── Where the passage stands ──

/** For each text of a page the stretches of it that belong to what is wanted. */
export function marksIn(texts, passages) {
  const page = lettersOf(texts);
  const spans = texts.map(() => []);
  for (const passage of passages) {
    for (const [start, end] of stretches(page.letters, lettersOf([passage]).letters)) {
      for (let position = start; position < end; position += 1) add(spans[page.from[position][0]], page.from[position][1]);
    }
  }
  return spans;
}

function add(spans, position) {
  const open = spans.at(-1);
  if (open && position >= open[0] && position <= open[1] + 1) open[1] = Math.max(open[1], position + 1);
  else spans.push([position, position + 1]);
}

/** Letters and figures alone: breaks, hyphens and ligatures are the printer's. */
function lettersOf(texts) {
  let letters = "";
  const from = []; // which text each comes from, and where it stands in it
  texts.forEach((text, which) => {
    let position = 0;
    for (const sign of text) {
      for (const letter of sign.normalize("NFKC").toLowerCase()) {
        if (!/[\p{L}\p{N}]/u.test(letter)) continue;
        letters += letter;
        for (let unit = 0; unit < letter.length; unit += 1) from.push([which, position]);
      }
      position += sign.length;
    }
  });
  return { letters, from };
}

/** The whole of what is wanted where it stands in one piece, else its longest pieces. */
function stretches(page, passage) {
  const whole = passage ? page.indexOf(passage) : -1;
  if (whole >= 0) return [[whole, whole + passage.length]];
  const pieces = [];
  let position = 0;
  while (position + FEWEST_CHARS <= passage.length) {
    const start = page.indexOf(passage.slice(position, position + FEWEST_CHARS));
    if (start < 0) {
      position += 1;
      continue;
    }
    let length = FEWEST_CHARS;
    while (position + length < passage.length && page[start + length] === passage[position + length]) length += 1;
    pieces.push([start, start + length]);
    position += length;
  }
  return pieces.sort((a, b) => a[0] - b[0]);
}
