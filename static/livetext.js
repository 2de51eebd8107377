// An answer while it is being written: the server renders it as it will stand.
import { morph } from "./morph.js";

/** Show the HTML; what stands already is kept, only the last block changes while words arrive. */
export function showLive(root, html) {
  morph(root, new DOMParser().parseFromString(html, "text/html").body, "innerHTML");
}
