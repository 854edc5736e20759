"use strict";
// The Dice of every pair of raters for one region, which the reader chooses.
(() => {
  const choice = document.getElementById("region");
  if (!choice) return;
  const data = JSON.parse(document.getElementById("region-dice").textContent);
  const SHADES = 10; // steps of the colour scale of similarity
  const rows = [...document.querySelectorAll("#region-matrix tbody tr")].map((row) => row.querySelectorAll("td"));

  function show() {
    let k = 0;
    for (let i = 0; i < rows.length; i++) {
      for (let j = i + 1; j < rows.length; j++, k++) {
        const value = data.dice[Number(choice.value)][k];
        for (const cell of [rows[i][j], rows[j][i]]) {
          cell.textContent = decimal(value, 3);
          cell.className = value === null ? "number" : `number shade${Math.round(SHADES * (1 - value))}`;
        }
      }
    }
  }

  data.names.forEach((name, k) => choice.append(new Option(name, k)));
  choice.addEventListener("change", show);
})();
