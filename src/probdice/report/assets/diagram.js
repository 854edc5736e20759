"use strict";
// The diagram of matched regions. Only the part that has been scrolled into view is drawn.
const diagram = (() => {
  const AT_ONCE = 150; // regions that are drawn together
  const content = JSON.parse(document.getElementById("diagram").textContent);
  const graph = document.querySelector(".graph");
  const box = graph.closest(".scroll");
  const [lines, regions] = ["lines", "regions"].map((name) => graph.appendChild(element("g", { class: name })));
  let drawn = 0; // height down to which the diagram is drawn

  function element(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const nameOf = ([, , name, full]) => full || name;

  function region(entry) {
    const [side, group, name, , size, colour, y, alone] = entry;
    const volume = `${size} ${content.units[Number(size !== "1")]}`;
    const full = nameOf(entry);
    const left = side === "reference";
    const x = left ? "40%" : "60%";
    const text = { x, dx: left ? -12 : 12, "text-anchor": left ? "end" : "start" };
    const label = `${side} ${full}, ${volume}${alone ? ", unmatched" : ""}`;
    return element(
      "g",
      { class: `region${alone ? " alone" : ""}`, "data-group": group, tabindex: -1, role: "button", "aria-pressed": "false", "aria-label": label },
      element("title", {}, full),
      element("rect", { class: "hit", x: left ? 0 : "58%", width: "42%", y: y - 18, height: 36 }),
      element("circle", { cx: x, cy: y, r: 7, fill: colour }),
      element("text", { ...text, y: y - 1 }, name),
      element("text", { ...text, class: "small", y: y + 12 }, volume),
    );
  }

  function line([one, two, dice, width, merged, apart]) {
    const [start, end] = [content.regions[one], content.regions[two]];
    const group = start[1];
    const ends = { x1: "40%", x2: "60%", y1: start[6], y2: end[6] };
    const about = `${nameOf(start)} ${merged ? "merged with" : "↔"} ${nameOf(end)}: Dice of the group ${dice}${apart ? `; no ${content.pixel} in common` : ""}`;
    return element(
      "g",
      { class: `link ${merged ? "merged" : "matched"}${apart ? " apart" : ""}`, "data-group": group },
      element("title", {}, about),
      element("line", { ...ends, class: "hit" }),
      element("line", { ...ends, "stroke-width": width }),
    );
  }

  // Draw everything above a height.
  function draw(until) {
    if (until <= drawn) return;
    const isNew = (y) => y >= drawn && y < until;
    lines.append(...content.lines.filter(([one]) => isNew(content.regions[one][6])).map(line));
    regions.append(...content.regions.filter((one) => isNew(one[6])).map(region));
    drawn = until;
    selection.mark(graph);
  }

  const all = () => draw(Infinity);
  const more = () => draw(box.scrollTop + 2 * box.clientHeight);
  box.addEventListener("scroll", more);
  window.addEventListener("beforeprint", all);
  if (content.regions.length <= AT_ONCE) all();
  else draw(content.regions[AT_ONCE][6]);

  // Show the selected group.
  selection.listen((chosen) => {
    const first = chosen === null ? null : content.regions.find((one) => one[1] === chosen);
    if (!first) return;
    const y = first[6];
    if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - 20) box.scrollTop = y - box.clientHeight / 2;
    more();
  });
  return { all };
})();
