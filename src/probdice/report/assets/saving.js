"use strict";
// What leaves the page: a file that is saved, or a text that is copied.
const saving = (() => {
  const said = document.getElementById("said");

  function say(text) {
    said.textContent = text;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => { said.textContent = ""; }, 4000);
  }

  function save(name, content, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    say(`${name} saved`);
  }

  async function copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      say(`${what} copied`);
    } catch {
      // No clipboard for this page: what is shown in its place can be copied by hand.
      window.prompt(`Copy the ${what.toLowerCase()}:`, text);
    }
  }

  // Files are called after the page.
  const page = decodeURIComponent(location.pathname).split("/").pop().replace(/\.html?$/, "");
  const name = (...parts) => [page, ...parts].filter((part) => part !== "").join("-").replace(/[^\p{L}\p{N}._-]+/gu, "_");
  return { copy, name, save, say };
})();
