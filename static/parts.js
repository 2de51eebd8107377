// Small things that several pages use.

export const csrfToken = () => document.querySelector('meta[name="csrf-token"]').content;

/** Tell screen readers what just happened. */
export function announce(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = text;
}

/** Another of our pages, as a document. */
export async function loadPage(url, options = {}) {
  const response = await fetch(url, { headers: { Accept: "text/html" }, ...options });
  if (!response.ok) throw new Error(await reasonOf(response));
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  showLocalTimes(page);
  return page;
}

/** What a refusal says, in words for people. */
export async function reasonOf(response) {
  const fallback = `The server answered ${response.status}. Please try again.`;
  try {
    const problem = await response.json();
    return problem.detail || fallback;
  } catch {
    return fallback;
  }
}

/** Times of the server, in the reader's own zone and language. */
export function showLocalTimes(page) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of page.querySelectorAll("time[datetime]:not([title])")) {
    time.title = time.textContent;
    time.textContent = format.format(new Date(time.dateTime));
  }
}

const labels = new WeakMap(); // of buttons, as they were

/** Answers are copied with their sources; links to them as they can be sent to others. */
export function copyOnClick() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-link]");
    if (!button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    const isLink = "link" in button.dataset;
    const done = await copy(isLink ? button.href : button.dataset.copy);
    const label = button.lastChild;
    if (!labels.has(button)) labels.set(button, label.textContent); // not "Copied", when clicked twice
    label.textContent = done ? " Copied" : " Could not copy";
    announce(done ? `Copied${isLink ? "" : " with its sources"}.` : "The browser refused to copy.");
    setTimeout(() => (label.textContent = labels.get(button)), 2000);
  });
}

async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused, for instance in a frame: the older way may still work.
    }
  }
  const area = Object.assign(document.createElement("textarea"), { value: text });
  area.className = "hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** Menus close when something else is clicked, and on Escape. */
export function dropMenus() {
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && event.target.closest?.("details.menu[open]");
    if (!menu) return;
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
