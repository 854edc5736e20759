"use strict";
// Before printing, choose a size of the content at which less than a third of every A4 sheet is blank.
// If there is no such size, also try fewer columns of pictures, then wider spacing. If no layout is sufficient,
// use the layout with the smallest blank share.
// To measure blank parts, lay the content out in columns as large as a sheet. Columns break like pages.
(() => {
  const SPACINGS = [1, 1.5, 2, 2.5]; // of sections and table rows
  const SIZES = [1, 0.97, 1.03, 0.94, 1.06, 0.91, 1.09, 0.88, 1.12, 0.85, 1.16, 1.2, 1.24, 1.28, 1.32, 1.36, 1.4, 1.45, 1.5, 1.55, 1.6];
  const BLANK = 0.31; // largest blank share of a sheet
  const [WIDTH, HEIGHT, GAP] = [186, 273, 20].map((millimetres) => (millimetres / 25.4) * 96); // A4 within its margins
  const DEVIATIONS = [2, 12, -12]; // on paper, a sheet may hold this many pixels more or fewer
  const PARTS = "h1, h2, h3, p, li, dt, dd, pre, th, td, figcaption, canvas, svg, img";
  const body = document.body;
  const columns = document.querySelector(".sides") ? [3, 2, 1] : [3];
  const layouts = SPACINGS.flatMap((spacing) => columns.flatMap((number) => SIZES.map((size) => [spacing, number, size])));

  // The largest blank share of a sheet, or infinity if the content does not fit into the sheets.
  function blankShare(size, height) {
    const lengths = { width: WIDTH / size, height: height / size, columnGap: GAP / size };
    for (const [name, length] of Object.entries(lengths)) body.style[name] = `${length}px`;
    body.style.zoom = size;
    const { left, top } = body.getBoundingClientRect();
    const ends = []; // of the content of every sheet
    for (const part of body.querySelectorAll(PARTS)) {
      for (const box of part.getClientRects()) {
        const sheet = Math.max(0, Math.floor((box.left - left + 1) / (WIDTH + GAP)));
        ends[sheet] = Math.max(ends[sheet] ?? 0, (box.bottom - top) / height);
      }
    }
    // Browsers shrink pages whose content is too wide.
    const boxes = [...body.querySelectorAll("table")].flatMap((table) => [...table.getClientRects()]);
    const isWide = boxes.some((box) => ((box.left - left + 1) % (WIDTH + GAP)) + box.width > WIDTH + 3);
    return Math.max(...ends) > 1.01 || isWide ? Infinity : 1 - Math.min(...ends);
  }

  window.addEventListener("beforeprint", () => {
    const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.media);
    const media = rules.map((rule) => rule.media.mediaText);
    const scrolled = [scrollX, scrollY];
    rules.forEach((rule, k) => (rule.media.mediaText = media[k].includes("print") ? "all" : "not all"));
    body.style.cssText = "margin: 0; columns: 1; column-fill: auto";
    let [best, least] = ["", Infinity];
    for (const [spacing, columns, size] of layouts) {
      body.style.setProperty("--spacing", spacing);
      body.style.setProperty("--columns", columns);
      let blank = blankShare(size, HEIGHT);
      for (const deviation of DEVIATIONS) if (blank < BLANK) blank = Math.max(blank, blankShare(size, HEIGHT + deviation));
      if (blank < least) [best, least] = [`--size: ${size}; --spacing: ${spacing}; --columns: ${columns}`, blank];
      if (least < BLANK) break;
    }
    rules.forEach((rule, k) => (rule.media.mediaText = media[k]));
    body.style.cssText = best;
    scrollTo(...scrolled);
  });
})();
