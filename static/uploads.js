// Files are added in one way wherever they come from; a notice says what becomes of them.
import { takeFilesAnywhere } from "./dropping.js";
import { watchLibrary } from "./library.js";
import { morph, takeParts } from "./morph.js";
import { announce, loadPage } from "./parts.js";
import { sendFiles } from "./upload.js";

const notice = document.getElementById("notice");
const form = document.querySelector("[data-upload]"); // on the library's page
const POLL_MS = 700;
const ENDED = ["done", "failed"];

export function startUploads() {
  if (!notice) return;
  notice.querySelector("button").addEventListener("click", close);
  notice.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // it stops no answer
    close();
  });
  takeFilesAnywhere(add);
  const field = form?.querySelector("[type=file]");
  const addChosen = () => field.files.length && add([...field.files]);
  field?.addEventListener("change", addChosen);
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    addChosen();
  });
}

function close() {
  notice.hidden = true;
  document.querySelector("#question, #files")?.focus();
}

async function add(files) {
  const what = files.length === 1 ? files[0].name : `${files.length} files`;
  const sent = await sendFiles(files, (share) => tell(`Sending ${what}`, [], share));
  form?.reset();
  showLibrary();
  const jobs = [];
  const began = performance.now();
  for (const job of sent.jobs) { // they are read one after the other
    jobs.push(await ended(job, (look) => tellReading(look, jobs.length, sent.jobs.length, began)));
    await showLibrary(); // what has been read can be asked about while the rest goes on
  }
  const added = jobs.filter((job) => job.state === "done");
  const refused = [...sent.refused, ...jobs.filter((job) => job.state !== "done").map(reason)];
  const words = added.length ? `${added.length === 1 ? added[0].document : `${added.length} files`} added to the library.` : "Nothing was added.";
  tell(words, refused, null);
  notice.querySelector("[data-added]").hidden = !added.length;
  announce([words, ...refused.map(line)].join(" "));
  await showLibrary();
}

/** A job when it has come to its end; one that cannot be asked about is said to have failed. */
async function ended({ id, document: name }, onLook) {
  onLook({ name });
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const response = await fetch(`/api/v1/jobs/${id}`).catch(() => null);
    if (!response?.ok) return { document: name, state: "failed", error: "Nothing is known of it: see Documents." };
    const job = await response.json();
    if (ENDED.includes(job.state)) return { ...job, document: name };
    onLook({ name, done: job.done, total: job.total });
  }
}

/** Which file is being read, how far, and about how long the rest takes. */
function tellReading({ name, done = 0, total = 0 }, read, count, began) {
  const share = (read + (total ? done / total : 0)) / count;
  const seconds = (performance.now() - began) / 1000;
  const left = share > 0.05 && seconds > 3 ? Math.ceil((seconds / share - seconds) / 5) * 5 : 0;
  const words = [`Reading ${name}`, count > 1 && `file ${read + 1} of ${count}`, total && `${done} of ${total} passages`, left && `about ${left} s left`];
  tell(words.filter(Boolean).join(" · "), [], share || undefined);
}

const reason = (job) => ({ document: job.document, reason: (job.error ?? "It failed.").replace(`${job.document}: `, "") });
const line = (file) => [file.document, file.reason].filter(Boolean).join(": ");

/** `share` of the work is done; undefined: nobody knows how much, null: it is over. */
function tell(words, refused = [], share = undefined) {
  const progress = notice.querySelector("progress");
  notice.hidden = false;
  notice.querySelector("[data-added]").hidden = true;
  notice.querySelector("p").textContent = words;
  progress.hidden = share === null;
  if (share === undefined) progress.removeAttribute("value");
  else progress.value = share ?? 1;
  notice.querySelector("ul").replaceChildren(
    ...refused.map((file) => Object.assign(document.createElement("li"), { textContent: line(file) })),
  );
}

/** What this page says of the library is no longer so. */
async function showLibrary() {
  const welcome = document.getElementById("welcome");
  if (form) return watchLibrary();
  const page = welcome && (await loadPage(location.href).catch(() => null));
  const fresh = page?.getElementById("welcome");
  if (!fresh || !welcome.isConnected) return;
  const wasEmpty = welcome.querySelector("[data-empty]");
  morph(welcome, fresh);
  takeParts(page);
  if (wasEmpty && !fresh.querySelector("[data-empty]") && document.activeElement === document.body) document.getElementById("question").focus();
}
