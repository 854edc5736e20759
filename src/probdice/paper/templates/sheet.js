"use strict";
// Save the typed ranks as a CSV table that `probdice rank` reads.

const key = JSON.parse(document.getElementById("key").textContent);
const sheet = document.getElementById("sheet");
const status = document.getElementById("status");
const tasks = [...sheet.querySelectorAll(".task")].map((section) => [
  ...section.querySelectorAll("input"),
]);
let unsaved = false;

const isRank = (input) => input.value !== "" && input.checkValidity();
const isComplete = (inputs) => inputs.every(isRank);
const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// The names of the segmentations are encoded, so that they are not readable in the source.
function opened(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

function table() {
  const rows = [["person", "image", "letter", "segmentation", "rank"]];
  opened(key.tasks).forEach(({ image, segmentations }, k) => {
    const complete = isComplete(tasks[k]);
    segmentations.forEach(([letter, name], n) => {
      rows.push([key.person, image, letter, name, complete ? tasks[k][n].value : ""]);
    });
  });
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

function incomplete() {
  return tasks.flatMap((inputs, k) => (isComplete(inputs) ? [] : [k + 1]));
}

function count() {
  const given = tasks.flat().filter(isRank).length;
  return `${given} of ${tasks.flat().length} ranks entered.`;
}

sheet.addEventListener("input", () => {
  unsaved = true;
  status.textContent = count();
});

document.getElementById("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  link.download = key.file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  unsaved = false;
  const missing = incomplete();
  status.textContent = missing.length
    ? `Saved as ${key.file}, without task${missing.length > 1 ? "s" : ""} ${missing.join(", ")}: ` +
      "ranks are missing, are out of range, or are not whole numbers."
    : `Saved as ${key.file}. Thank you.`;
});

window.addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});

status.textContent = count();
