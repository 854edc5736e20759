"use strict";
// One group is chosen, or none. Whatever carries data-group follows, and the images listen.
const selection = (() => {
  let chosen = null;
  const listeners = [];

  function choose(group) {
    chosen = group === chosen ? null : group;
    document.documentElement.classList.toggle("choosing", chosen !== null);
    for (const element of document.querySelectorAll("[data-group]")) {
      const on = chosen !== null && Number(element.dataset.group) === chosen;
      element.classList.toggle("chosen", on);
      if (element.hasAttribute("aria-pressed")) element.setAttribute("aria-pressed", String(on));
    }
    for (const listener of listeners) listener(chosen);
  }

  document.addEventListener("click", (event) => {
    const element = event.target.closest("[data-group]");
    if (element) choose(Number(element.dataset.group));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen !== null) choose(null);
    const region = event.target.closest("g[data-group]");
    if (region && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      choose(Number(region.dataset.group));
    }
  });
  return { choose, get chosen() { return chosen; }, listen: (listener) => listeners.push(listener) };
})();
