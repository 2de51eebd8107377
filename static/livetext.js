// An answer while it is being written: a little Markdown, made of nodes, never of HTML.
// The server's own rendering takes its place at the end; this one only has to look like it.

const FENCE = /^\s*(```|~~~)/;
const BULLET = /^\s*[-*+]\s+(.*)$/;
const NUMBERED = /^\s*(\d{1,3})[.)]\s+(.*)$/;
const HEADING = /^#{1,6}\s+(.*)$/;
const QUOTE = /^\s*>\s?(.*)$/;
const ROW = /^\s*\|(.*)\|\s*$/;
const RULE = /^\s*\|?[\s:|-]*-{3}[\s:|-]*$/;
const INLINE = /(`[^`\n]+`)|(\*\*[^*\n]+\*\*)|(\[\d+(?:\s*[,–-]\s*\d+)*\])(?!\()/;

/** Show the text; `chip` makes the node for a marker, or null while its source is not known. */
export function showLive(root, text, chip) {
  const fresh = blocks(text, chip);
  // What stands already is kept: only the last block changes while words arrive.
  fresh.forEach((node, at) => {
    const old = root.children[at];
    if (!old) root.append(node);
    else if (!old.isEqualNode(node)) old.replaceWith(node);
  });
  while (root.children.length > fresh.length) root.lastElementChild.remove();
}

function blocks(text, chip) {
  const lines = text.split("\n");
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const [node, next] = block(lines, at, chip);
    if (node) made.push(node);
    at = next;
  }
  return made;
}

function block(lines, at, chip) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  if (FENCE.test(line)) return fence(lines, at);
  if (HEADING.test(line)) return [filled("h3", HEADING.exec(line)[1], chip), at + 1];
  if (BULLET.test(line)) return list("ul", BULLET, lines, at, chip);
  if (NUMBERED.test(line)) return list("ol", NUMBERED, lines, at, chip);
  if (ROW.test(line)) return table(lines, at, chip);
  if (QUOTE.test(line)) return quotation(lines, at, chip);
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines[end])) end += 1;
  return [filled("p", lines.slice(at, end).join("\n"), chip), end];
}

const begins = (line) => [FENCE, BULLET, NUMBERED, HEADING, ROW, QUOTE].some((shape) => shape.test(line));

function fence(lines, at) {
  let end = at + 1;
  while (end < lines.length && !FENCE.test(lines[end])) end += 1;
  const code = element("code", lines.slice(at + 1, end).join("\n"));
  const pre = element("pre");
  pre.append(code);
  return [pre, end + 1];
}

function list(tag, shape, lines, at, chip) {
  const made = element(tag);
  let end = at;
  while (end < lines.length && shape.test(lines[end])) {
    const found = shape.exec(lines[end]);
    if (tag === "ol" && end === at) made.start = Number(found[1]);
    made.append(filled("li", found.at(-1), chip));
    end += 1;
  }
  return [made, end];
}

function quotation(lines, at, chip) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const made = element("blockquote");
  const words = lines.slice(at, end).map((line) => QUOTE.exec(line)[1]);
  made.append(filled("p", words.join("\n"), chip));
  return [made, end];
}

function table(lines, at, chip) {
  const made = element("table");
  let end = at;
  while (end < lines.length && ROW.test(lines[end])) {
    if (!RULE.test(lines[end])) {
      const row = element("tr");
      const cells = ROW.exec(lines[end])[1].split("|");
      row.append(...cells.map((cell) => filled(end === at ? "th" : "td", cell.trim(), chip)));
      made.append(row);
    }
    end += 1;
  }
  return [made, end];
}

function filled(tag, text, chip) {
  const made = element(tag);
  let rest = text;
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    const before = rest.slice(0, found.index);
    made.append(found[3] ? before.replace(/ $/, "\u00a0") : before, inline(found, chip));
    rest = rest.slice(found.index + found[0].length);
  }
  made.append(rest);
  return made;
}

function inline([whole, code, strong], chip) {
  if (code) return element("code", code.slice(1, -1));
  if (strong) return element("strong", strong.slice(2, -2));
  const numbers = whole.match(/\d+/g).map(Number);
  const chips = numbers.map(chip);
  if (whole.includes("-") || whole.includes("–") || chips.includes(null)) return whole;
  const group = element("span");
  group.className = "cites";
  group.append(...chips);
  return group;
}

function element(tag, text = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
