"use strict";
// The plot of Dice per region: shows the selected group and the group under the pointer.
const dicePlot = (() => {
  const box = document.querySelector(".bars");
  const rows = new Map([...box.querySelectorAll("button")].map((row) => [Number(row.dataset.group), row]));
  let pointed = null;

  // The row of a group, or the summary that hides it.
  function visible(group) {
    const row = rows.get(group);
    return row?.closest("details:not([open])")?.querySelector("summary") ?? row;
  }

  function point(group) {
    const row = visible(group) ?? null;
    if (row === pointed) return;
    pointed?.classList.remove("pointed");
    row?.classList.add("pointed");
    pointed = row;
  }

  // Scroll the plot, but not the page.
  selection.listen((chosen) => {
    const row = rows.get(chosen);
    if (!row) return;
    row.closest("details")?.setAttribute("open", "");
    const head = box.querySelector(".axis").clientHeight;
    const [top, edge] = [row.getBoundingClientRect(), box.getBoundingClientRect()];
    if (top.top < edge.top + head || top.bottom > edge.bottom) box.scrollTop += top.top - edge.top - edge.height / 2;
  });
  if (rows.size) selection.rove(box, "button");
  const nameOf = (group) => rows.get(group)?.title ?? "";
  return { point, nameOf, groups: [...rows.keys()] };
})();
