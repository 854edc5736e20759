"use strict";
// At most one group is selected. Elements with data-group show the selection, and so do the images.
const selection = (() => {
  let chosen = null;
  const listeners = [];

  // `go`: whether the images move to the location where the group differs most.
  function choose(group, go = false) {
    chosen = group;
    document.documentElement.classList.toggle("choosing", chosen !== null);
    mark(document);
    for (const listener of listeners) listener(chosen, go);
  }

  // Show the selection on all elements in a box.
  function mark(box) {
    for (const element of box.querySelectorAll("[data-group]")) {
      const on = chosen !== null && Number(element.dataset.group) === chosen;
      element.classList.toggle("chosen", on);
      if (element.hasAttribute("aria-pressed")) element.setAttribute("aria-pressed", String(on));
    }
  }

  const toggle = (group, go = false) => choose(group === chosen ? null : group, go && group !== chosen);

  // In a list of options, one option is a tab stop. Arrow keys move to the other options.
  function rove(box, selector) {
    const items = () => [...box.querySelectorAll(selector)].filter((item) => !item.closest("[hidden], details:not([open])"));
    function stop(item) {
      for (const one of box.querySelectorAll(selector)) one.setAttribute("tabindex", one === item ? "0" : "-1");
    }
    stop(items()[0]);
    box.addEventListener("focusin", (event) => {
      const item = event.target.closest(selector);
      if (item) stop(item);
    });
    box.addEventListener("keydown", (event) => {
      const at = items().indexOf(event.target.closest(selector));
      if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      const all = items();
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      all[Math.min(all.length - 1, Math.max(0, to))].focus();
    });
    return () => stop(items()[0]);
  }

  document.addEventListener("click", (event) => {
    const element = event.target.closest("[data-group]");
    if (element) toggle(Number(element.dataset.group), true);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen !== null) choose(null);
    const region = event.target.closest("g[data-group]");
    if (region && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      toggle(Number(region.dataset.group), true);
    }
  });
  return { choose, mark, rove, toggle, get chosen() { return chosen; }, listen: (listener) => listeners.push(listener) };
})();
