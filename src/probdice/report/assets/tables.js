"use strict";
// Sort tables by a click on a heading: numbers by value, text in natural order.
(() => {
  const collator = new Intl.Collator(undefined, { numeric: true });

  // Python writes infinity as "inf".
  function numberOf(text) {
    return text === "" ? NaN : Number(text.replace("inf", "Infinity"));
  }

  function compare(kind, column) {
    return (one, two) => {
      const [a, b] = [one, two].map((row) => row.cells[column].dataset.value ?? "");
      if (kind === "text") return collator.compare(a, b);
      // Values that are not numbers come last in both directions.
      const [x, y] = [numberOf(a), numberOf(b)];
      return x === y ? 0 : x - y;
    };
  }

  function isMissing(row, kind, column) {
    const text = row.cells[column].dataset.value ?? "";
    return kind === "number" && Number.isNaN(numberOf(text));
  }

  function sort(button) {
    const header = button.closest("th");
    const table = header.closest("table");
    const column = header.cellIndex;
    const kind = button.dataset.kind;
    const falling = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const known = rows.filter((row) => !isMissing(row, kind, column)).sort(compare(kind, column));
    if (falling) known.reverse();
    body.append(...known, ...rows.filter((row) => isMissing(row, kind, column)));
  }

  for (const button of document.querySelectorAll(".sortable thead button")) {
    button.addEventListener("click", () => sort(button));
  }
})();
