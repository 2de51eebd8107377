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
