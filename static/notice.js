// Files that were dropped beside the library's page: a notice says what becomes of them.
import { takeFilesAnywhere } from "./dropping.js";
import { morph, takeParts } from "./morph.js";
import { announce, loadPage } from "./parts.js";
import { sendFiles } from "./upload.js";

const notice = document.getElementById("notice");
const POLL_MS = 700;
const ENDED = ["done", "failed"];

export function startNotice() {
  if (!notice || document.querySelector("[data-upload]")) return;
  notice.querySelector("button").addEventListener("click", close);
  notice.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // it stops no answer
    close();
  });
  takeFilesAnywhere(send);
}

function close() {
  notice.hidden = true;
  document.getElementById("question")?.focus();
}

async function send(files) {
  const what = files.length === 1 ? files[0].name : `${files.length} files`;
  const sent = await sendFiles(files, (share) => tell(`Sending ${what}`, [], share));
  if (sent.jobs.length) tell(`Reading ${what}`);
  const jobs = [];
  for (const job of sent.jobs) { // they are read one after the other
    jobs.push(await ended(job));
    if (sent.jobs.length > 1) tell(`Reading: ${jobs.length} of ${sent.jobs.length} files`, [], jobs.length / sent.jobs.length);
  }
  const added = jobs.filter((each) => each.state === "done");
  const refused = [...sent.refused, ...jobs.filter((each) => each.state !== "done").map(reason)];
  const words = `${added.length === 1 ? added[0].document : `${added.length} files`} added to the library.`;
  tell(added.length ? words : "Nothing was added.", refused, null);
  announce([added.length ? words : "Nothing was added.", ...refused.map(line)].join(" "));
  if (added.length) await showLibrary();
}

/** A job when it has come to its end; one that cannot be asked about is said to have failed. */
async function ended({ id, document: name }) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const response = await fetch(`/api/v1/jobs/${id}`).catch(() => null);
    if (!response?.ok) return { document: name, state: "failed", error: "Nothing is known of it: see Documents." };
    const job = await response.json();
    if (ENDED.includes(job.state)) return { ...job, document: name };
  }
}

const reason = (job) => ({ document: job.document, reason: (job.error ?? "It failed.").replace(`${job.document}: `, "") });
const line = (each) => [each.document, each.reason].filter(Boolean).join(": ");

/** `share` of the work is done; undefined: nobody knows how much, null: it is over. */
function tell(words, refused = [], share = undefined) {
  const progress = notice.querySelector("progress");
  notice.hidden = false;
  notice.querySelector("p").textContent = words;
  progress.hidden = share === null;
  if (share === undefined) progress.removeAttribute("value");
  else progress.value = share ?? 1;
  notice.querySelector("ul").replaceChildren(
    ...refused.map((each) => Object.assign(document.createElement("li"), { textContent: line(each) })),
  );
}

/** What a new conversation says of the library is no longer so. */
async function showLibrary() {
  const welcome = document.getElementById("welcome");
  const page = welcome && (await loadPage(location.href).catch(() => null));
  const fresh = page?.getElementById("welcome");
  if (!fresh || !welcome.isConnected) return;
  morph(welcome, fresh);
  takeParts(page);
}
