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
