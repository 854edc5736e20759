"use strict";
// The Dice of every pair of raters for one region, which the reader chooses. On paper, the matrices
// of the worst regions are printed.
(() => {
  const choice = document.getElementById("region");
  if (!choice) return;
  const data = JSON.parse(document.getElementById("region-dice").textContent);
  const SHADES = 10; // steps of the colour scale of similarity
  const PRINTED = 8; // largest number of printed matrices
  const box = document.getElementById("region-matrix");
  const printed = [];

  function show(matrix, region) {
    const rows = [...matrix.querySelectorAll("tbody tr")].map((row) => row.querySelectorAll("td"));
    let k = 0;
    for (let i = 0; i < rows.length; i++) {
      for (let j = i + 1; j < rows.length; j++, k++) {
        const value = data.dice[region][k];
        for (const cell of [rows[i][j], rows[j][i]]) {
          cell.textContent = decimal(value, 3);
          cell.className = value === null ? "number" : `number shade${Math.round(SHADES * (1 - value))}`;
        }
      }
    }
    matrix.querySelector("select").value = region;
  }

  data.names.forEach((name, k) => choice.append(new Option(name, k)));
  choice.addEventListener("change", () => show(box, Number(choice.value)));
  window.addEventListener("beforeprint", () => {
    for (let region = 0; region < Math.min(PRINTED, data.names.length); region++) {
      if (region === Number(choice.value)) continue;
      const copy = box.cloneNode(true);
      for (const element of [copy, ...copy.querySelectorAll("[id]")]) element.removeAttribute("id");
      show(copy, region);
      (printed.at(-1) ?? box).after(copy);
      printed.push(copy);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const copy of printed.splice(0)) copy.remove();
  });
})();
