"use strict";
// Format a number. Numbers below 1 are not rounded up to 1, which would mean equality.
function decimal(value, digits = 4) {
  if (value === null) return "–";
  if (typeof value === "string") return value; // "∞"
  const text = value.toFixed(digits);
  if (Math.abs(value) >= 1 || Math.abs(Number(text)) < 1) return Number(text) === 0 ? text.replace("-", "") : text;
  return (Math.sign(value) * (1 - 10 ** -digits)).toFixed(digits);
}
