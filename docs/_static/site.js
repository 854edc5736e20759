// The arrows that open a part of the side bar have no words of their own.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary:not([aria-label])")) {
    if (!summary.textContent.trim()) {
      summary.setAttribute("aria-label", "Show or hide the pages below");
    }
  }
});
