// Which collections a conversation asks.
const place = document.querySelector("[data-choice]");
const boxes = place ? [...place.querySelectorAll("input[type=checkbox]")] : [];

export function startChoice() {
  place?.addEventListener("change", () => {
    const names = ticked().map((box) => box.dataset.name);
    place.querySelector("b").textContent = isAll() ? `all ${boxes.length} collections` : names.join(", ");
  });
}

/** Their ids, none of them for all; null where there is nothing to choose. */
export function chosenCollections() {
  if (!place) return null;
  return isAll() ? [] : ticked().map((box) => box.value);
}

function ticked() {
  return boxes.filter((box) => box.checked);
}

function isAll() {
  return ticked().length % boxes.length === 0;
}
