// Ask and read: the question goes off without a new page, the answer comes as it is written.
import { chosenCollections } from "./choice.js";
import { lookForJudge, waitForJudge, warningsIn } from "./judged.js";
import { letScroll } from "./keys.js";
import { morph, showLive, takeParts } from "./morph.js";
import { renewEvidence } from "./panel.js";
import { announce, loadPage, reasonOf } from "./parts.js";
import { forgetDraft, keepDraft } from "./storage.js";
import { events, eventsAgain } from "./stream.js";
import { arrive, showMore } from "./turns.js";

const form = document.querySelector("[data-ask]");
const turns = document.getElementById("turns");
const box = document.getElementById("question");
let sessionId = document.getElementById("session-head")?.dataset.session;
let inUse = null; // what the conversation is known to ask, and which model
const SEARCHING = "Searching the documents";
let running = null; // the answer that is being written

export function startConversation() {
  if (!form) return;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(event.submitter?.value || box.value);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!running) form.requestSubmit();
  });
  box.addEventListener("input", grow);
  keepDraft(box, () => sessionId);
  form.querySelector("[data-stop]").addEventListener("click", stop);
  document.addEventListener("keydown", (event) => {
    const isElsewhere = event.defaultPrevented || event.isComposing || event.target.closest("input");
    if (event.key === "Escape" && !isElsewhere) stop();
  });
  document.addEventListener("submit", onSubmit);
  document.addEventListener("click", onClick);
  inUse = JSON.stringify(chosen());
  grow();
  arrive();
  goOnReading();
  lookForJudge();
}

function onSubmit(event) {
  const again = event.target.closest("[data-regenerate]");
  if (again) {
    event.preventDefault();
    writeAgain(Number(again.dataset.regenerate));
  }
}

function onClick(event) {
  const edit = event.target.closest("[data-edit]");
  const goOn = event.target.closest("[data-go-on]");
  const more = event.target.closest("[data-earlier], [data-later]");
  if (goOn) {
    event.preventDefault();
    ask("Go on.");
  } else if (edit) {
    event.preventDefault();
    fillBox(edit.dataset.edit);
  } else if (more) {
    event.preventDefault();
    showMore(more);
  }
}

/** Browsers that cannot size a field by its content are helped. */
function grow() {
  if (CSS.supports("field-sizing", "content")) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
}

function fillBox(text) {
  box.value = text;
  grow();
  box.focus();
  box.setSelectionRange(text.length, text.length);
}

// ── Asking ──

async function ask(question) {
  if (running) return;
  if (!question.trim()) return showError("The question is empty. Type what you want to know.");
  showError("");
  if (form.elements.edit || turns.querySelector("[data-newest]")) return askOnPage(question);
  const isNew = !sessionId;
  const sent = addQuestion(question);
  const live = new LiveAnswer();
  box.value = "";
  grow();
  forgetDraft(sessionId);
  toTop(sent);
  await run(live, async () => {
    await choose();
    if (isNew) form.action = `/sessions/${sessionId}/ask`;
    showAddress();
    return events(`/api/v1/sessions/${sessionId}/messages?html=true`, { content: question });
  }, () => {
    // Nothing was stored: the question goes back to where it came from.
    sent.remove();
    live.remove();
    fillBox(question);
  });
}

/** An older stretch is shown, or an earlier question edited: a form, and another page comes back. */
function askOnPage(question) {
  box.value = question;
  forgetDraft(sessionId);
  form.dataset.sent = "yes";
  form.submit();
}

async function writeAgain(index) {
  if (running) return;
  showError("");
  const old = document.getElementById(`m${index}`);
  const live = new LiveAnswer(old);
  const url = `/api/v1/sessions/${sessionId}/messages/${index}/regenerate?html=true`;
  await run(live, async () => events(url, {}), () => live.giveBack());
}

/** Which collections are asked, and by which model, where there is something to choose. */
function chosen() {
  const collections = chosenCollections();
  const model = form.elements.model?.value;
  return { ...(collections && { collections }), ...(model && { model }) };
}

/** Begins the conversation if there is none yet, and keeps what it asks. */
async function choose() {
  const choice = JSON.stringify(chosen());
  if (sessionId && choice === inUse) return;
  const response = await fetch(`/api/v1/sessions${sessionId ? `/${sessionId}` : ""}`, {
    method: sessionId ? "PUT" : "POST",
    headers: { "Content-Type": "application/json" },
    body: choice,
  });
  if (!response.ok) throw Object.assign(new Error(await reasonOf(response)), { isRefusal: true });
  sessionId = (await response.json()).id;
  inUse = choice;
}

async function run(live, begin, takeBack) {
  running = live;
  showRunning(true);
  announce("The documents are being searched.");
  try {
    await readToTheEnd(live, begin);
  } catch (error) {
    takeBack();
    showError(error.isRefusal ? error.message : "The server cannot be reached. Your question is kept here: try again.");
    return;
  } finally {
    running = null;
    showRunning(false);
  }
  await settle(live);
}

/** The answer goes on without us: whatever breaks off is read on from where it was. */
async function readToTheEnd(live, begin) {
  let read = begin;
  for (let tries = 0; !live.isEnded; tries += 1) {
    try {
      const stream = await read();
      for (let next = await stream.next(); !next.done; next = await stream.next()) {
        live.take(next.value.name, next.value.values, next.value.id);
        tries = 0;
        if (live.isEnded) return void waitForJudge(stream);
      }
    } catch (error) {
      if (error.isRefusal || live.index === null) throw error;
    }
    if (live.isEnded) return;
    if (live.index === null || tries >= 8) return live.breakOff("The connection broke off.");
    await new Promise((resolve) => setTimeout(resolve, Math.min(250 * 2 ** tries, 5000)));
    const url = `/api/v1/sessions/${sessionId}/messages/${live.index}/events?html=true`;
    read = async () => eventsAgain(url, live.lastId);
  }
}

async function stop() {
  const live = running;
  if (!live) return;
  live.isStopped = true;
  if (live.index === null) return; // told as soon as it has begun
  await fetch(`/api/v1/sessions/${sessionId}/messages/${live.index}/stop`, { method: "POST" }).catch(() => null);
}

/** The page comes back to an answer that is being written. */
async function goOnReading() {
  const note = [...turns.querySelectorAll("[data-pending]")].at(-1);
  if (!note) return;
  const old = note.closest("[data-message]");
  const live = new LiveAnswer(old);
  const url = `/api/v1/sessions/${sessionId}/messages/${old.id.slice(1)}/events?html=true`;
  live.index = Number(old.id.slice(1));
  await run(live, async () => eventsAgain(url, null), () => live.giveBack());
}

function showAddress() {
  const url = `/sessions/${sessionId}`;
  if (location.pathname !== url) history.replaceState(null, "", url);
}

function showRunning(isRunning) {
  turns.setAttribute("aria-busy", String(isRunning)); // read out when it is whole
  const hadFocus = form.contains(document.activeElement);
  form.querySelector("[type=submit]").hidden = isRunning;
  form.querySelector("[data-stop]").hidden = !isRunning;
  if (hadFocus && document.activeElement !== box) box.focus({ preventScroll: true });
}

function showError(text) {
  let note = document.getElementById("form-error");
  if (!text) return note?.remove();
  if (!note) {
    note = Object.assign(document.createElement("p"), { id: "form-error", className: "note is-error" });
    note.setAttribute("role", "alert");
    form.prepend(note);
  }
  note.textContent = text;
}

function addQuestion(text) {
  document.getElementById("welcome")?.remove();
  const article = Object.assign(document.createElement("article"), { className: "question" });
  const paragraph = document.createElement("p");
  paragraph.textContent = text;
  article.append(paragraph);
  turns.append(article);
  return article;
}

/** The question moves to the top once; the answer then grows below it and nothing jumps. */
function toTop(question) {
  const height = document.querySelector(".dock").offsetHeight + document.getElementById("session-head").offsetHeight;
  const room = innerHeight - height - question.offsetHeight - 110;
  turns.querySelectorAll(".answer").forEach((answer) => answer.style.removeProperty("min-height"));
  turns.lastElementChild.style.minHeight = `${Math.max(room, 160)}px`;
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  question.scrollIntoView({ block: "start", behavior: isCalm ? "auto" : "smooth" });
}

// ── The answer while it is written ──

class LiveAnswer {
  constructor(old = null) {
    this.old = old;
    this.html = "";
    this.isStopped = false;
    this.lastId = null;
    this.isEnded = false;
    this.index = null;
    this.article = Object.assign(document.createElement("article"), { className: "answer is-live" });
    this.article.setAttribute("aria-label", "Answer");
    this.waiting = Object.assign(document.createElement("p"), { className: "waiting", textContent: SEARCHING });
    this.prose = Object.assign(document.createElement("div"), { className: "prose" });
    this.article.append(this.waiting, this.prose);
    if (old) {
      const hadFocus = old.contains(document.activeElement);
      this.article.style.minHeight = `${old.offsetHeight}px`;
      this.article.tabIndex = -1;
      old.replaceWith(this.article);
      if (hadFocus) this.article.focus({ preventScroll: true });
    } else {
      turns.append(this.article);
    }
  }

  take(name, values, id) {
    if (name === "error" && !id && this.index === null) throw Object.assign(new Error(values.detail), { isRefusal: true }); // never begun
    if (name === "waiting") this.waiting.textContent = values.before ? `${values.before} question${values.before === 1 ? "" : "s"} before yours` : "Your question is next";
    if (id) {
      this.lastId = id;
      this.index = Number(id.split("-")[0]);
      if (this.isStopped) stop();
      this.isStopped = false;
    }
    if (name === "resolved" && values.is_followup) this.searchedFor(values.query);
    if (name === "resolved") this.waiting.textContent = SEARCHING;
    if (name === "sources") this.waiting.textContent = "Reading the sources";
    if (name === "tool") this.waiting.textContent = values.outcome || "Looking further";
    if (name === "html") this.show(values);
    if (name === "discard") this.discard(values.reason);
    if (name === "final" || name === "error") this.end(name, values);
  }

  searchedFor(query) {
    const line = Object.assign(document.createElement("p"), { className: "searched" });
    const words = document.createElement("span");
    words.textContent = query;
    line.append("Searched for: ", words);
    this.article.prepend(line);
  }

  show({ keep, html }) {
    this.html = this.html.slice(0, keep) + html;
    if (this.html) this.waiting.remove();
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      showLive(this.prose, this.html);
    });
  }

  discard(reason) {
    this.waiting.textContent = reason;
    this.prose.before(this.waiting);
  }

  end(name, values) {
    this.isEnded = true;
    this.index = values.index ?? this.index;
    this.waiting.remove();
    const isStopped = values.detail === "Stopped.";
    if (name === "error") this.note(values.detail, isStopped ? "note" : "note is-error");
    const count = new Set((values.citations ?? []).map((citation) => citation.n)).size;
    this.outcome = name === "error" ? (isStopped ? "Stopped." : "The answer failed.") : `The answer is ready, with ${count} source${count === 1 ? "" : "s"}.`;
    announce(this.outcome);
  }

  /** Once more where there is something to add. */
  tellEnd(warnings) {
    if (warnings) announce(`${this.outcome} ${warnings}`);
  }

  breakOff(text) {
    this.waiting.remove();
    this.note(text, "note");
    announce(text);
  }

  note(text, className) {
    this.article.append(Object.assign(document.createElement("p"), { textContent: text, className }));
  }

  /** Nothing came of it: the answer that stood here before is back. */
  giveBack() {
    const hadFocus = this.article.contains(document.activeElement);
    this.article.replaceWith(this.old);
    if (hadFocus) this.old.focus({ preventScroll: true });
  }

  remove() {
    this.article.remove();
  }
}

// ── Afterwards: the page as the server shows it ──

async function settle(live) {
  showAddress();
  try {
    const page = await loadPage(`/sessions/${sessionId}`);
    document.title = page.title;
    takeMessages(page, live);
    takeParts(page);
    renewEvidence();
    sessionId = document.getElementById("session-head").dataset.session;
  } catch {
    // What was written stays in sight; the page itself can be loaded again later.
  }
}

function takeMessages(page, live) {
  const [question, answer] = [...page.querySelectorAll("#turns [data-message]")].slice(-2);
  if (!answer) return;
  const before = live.article.previousElementSibling;
  morph(live.article, answer);
  letScroll(live.article);
  if (before?.classList.contains("question")) morph(before, question);
  live.tellEnd(warningsIn(live.article));
  turns.querySelectorAll("[data-regenerate]").forEach((button) => {
    if (!live.article.contains(button)) button.remove(); // only the last answer can be written again
  });
}
