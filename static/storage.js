// What a browser remembers for its reader; nothing, where its storage is switched off or full.

/** `store` is "sessionStorage" or "localStorage". */
export function read(store, key) {
  try {
    return window[store].getItem(key) ?? "";
  } catch {
    return "";
  }
}

export function write(store, key, text) {
  try {
    if (text) window[store].setItem(key, text);
    else window[store].removeItem(key);
  } catch {
    // It is not remembered then.
  }
}

// A question that is half written outlives a reload and a look at another page, in this tab.
const keyOf = (sessionId) => `draft ${sessionId ?? ""}`;

/** Bring back what stood in the box, and remember what comes to stand there. */
export function keepDraft(box, sessionId) {
  if (!box.value) box.value = read("sessionStorage", keyOf(sessionId()));
  addEventListener("pagehide", () => {
    if (box.form.dataset.sent) return; // this page's form took it along
    if (box.value.trim()) write("sessionStorage", keyOf(sessionId()), box.value);
    else forgetDraft(sessionId());
  });
}

export const forgetDraft = (sessionId) => write("sessionStorage", keyOf(sessionId), "");
