// A question that is half written outlives a reload and a look at another page, in this tab.

const keyOf = (sessionId) => `draft ${sessionId ?? ""}`;

/** Bring back what stood in the box, and remember what comes to stand there. */
export function keepDraft(box, sessionId) {
  if (!box.value) box.value = read(keyOf(sessionId()));
  addEventListener("pagehide", () => {
    if (box.value.trim()) write(keyOf(sessionId()), box.value);
    else forgetDraft(sessionId());
  });
}

export const forgetDraft = (sessionId) => write(keyOf(sessionId), "");

function read(key) {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return ""; // storage is switched off
  }
}

function write(key, text) {
  try {
    if (text) sessionStorage.setItem(key, text);
    else sessionStorage.removeItem(key);
  } catch {
    // Switched off, or full: there is no draft then.
  }
}
