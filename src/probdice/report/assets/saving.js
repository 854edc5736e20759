"use strict";
// Save files and copy text.
const saving = (() => {
  const output = document.getElementById("message");

  function announce(text) {
    output.textContent = text;
    clearTimeout(announce.timer);
    announce.timer = setTimeout(() => { output.textContent = ""; }, 4000);
  }

  function save(name, content, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    announce(`${name} saved`);
  }

  async function copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      announce(`${what} copied`);
    } catch {
      // Without clipboard access, show the text so that the user can copy it.
      window.prompt(`Copy the ${what.toLowerCase()}:`, text);
    }
  }

  // File names start with the name of the page.
  const page = decodeURIComponent(location.pathname).split("/").pop().replace(/\.html?$/, "");
  const name = (...parts) => [page, ...parts].filter((part) => part !== "").join("-").replace(/[^\p{L}\p{N}._-]+/gu, "_");
  return { copy, name, save, announce };
})();
