// An answer while it is being written: the server renders it as it will stand.

/** Show the HTML; what stands already is kept, only the last block changes while words arrive. */
export function showLive(root, html) {
  const fresh = [...new DOMParser().parseFromString(html, "text/html").body.children];
  fresh.forEach((node, at) => {
    const old = root.children[at];
    if (!old) root.append(document.adoptNode(node));
    else if (!old.isEqualNode(node)) old.replaceWith(document.adoptNode(node));
  });
  while (root.children.length > fresh.length) root.lastElementChild.remove();
}
