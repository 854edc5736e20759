"use strict";
// The plot of Dice per region: shows the selected group and the group under the pointer.
const dicePlot = (() => {
  const box = document.querySelector(".bars");
  const rows = new Map([...box.querySelectorAll("button")].map((row) => [Number(row.dataset.group), row]));
  let pointed = null;

  function point(group) {
    if (group === pointed) return;
    rows.get(pointed)?.classList.remove("pointed");
    rows.get(group)?.classList.add("pointed");
    pointed = group;
  }

  // Scroll the plot, but not the page.
  selection.listen((chosen) => {
    const row = rows.get(chosen);
    if (!row) return;
    const head = box.querySelector(".axis").clientHeight;
    const [top, edge] = [row.getBoundingClientRect(), box.getBoundingClientRect()];
    if (top.top < edge.top + head || top.bottom > edge.bottom) box.scrollTop += top.top - edge.top - edge.height / 2;
  });
  if (rows.size) selection.rove(box, "button");
  return { point };
})();
