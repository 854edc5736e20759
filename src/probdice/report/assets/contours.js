"use strict";
// The contours of one side in a plane, as two SVG paths in pixels of the plane. The second path
// contains the emphasised group, and the first path contains all other groups. Contours of label
// maps follow pixel edges. Contours of probabilities are lines of equal probability of a group.
function contoursOf({ data, scale, total }, state, { sizeOf, walk }) {
  const isShown = (group) => group >= -1 && group !== data.background && (selection.chosen === null || group === selection.chosen);

  function edges(entry, plane, group) {
    const [width, height] = sizeOf(plane);
    const [first, right, down] = walk(plane);
    // An empty border around the plane closes contours that reach the edge of the plane.
    const wide = width + 2;
    const groups = new Int32Array(wide * (height + 2)).fill(-9);
    for (let row = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, pixel += right) {
        const own = entry.group[entry.codes[pixel]];
        if (isShown(own)) groups[(row + 1) * wide + column + 1] = own;
      }
    }
    const paths = [[], []];
    // The index of the path that an edge between two pixels belongs to, or −1.
    const pathOf = (one, two) => (one === two ? -1 : Number(one === group || two === group));
    for (let row = 0; row <= height; row++) {
      for (let column = 0, start = 0, path = -1; column <= width; column++) {
        const at = row * wide + column + 1;
        const next = column < width ? pathOf(groups[at], groups[at + wide]) : -1;
        if (next === path) continue;
        if (path >= 0) paths[path].push(`M${start} ${row}H${column}`);
        [start, path] = [column, next];
      }
    }
    for (let column = 0; column <= width; column++) {
      for (let row = 0, start = 0, path = -1; row <= height; row++) {
        const at = (row + 1) * wide + column;
        const next = row < height ? pathOf(groups[at], groups[at + 1]) : -1;
        if (next === path) continue;
        if (path >= 0) paths[path].push(`M${column} ${start}V${row}`);
        [start, path] = [row, next];
      }
    }
    return paths;
  }

  // The sides of a square (top, right, bottom, left) that a line joins, indexed by the inside corners.
  const JOINED = [[], [3, 2], [2, 1], [3, 1], [0, 1], [0, 3, 2, 1], [0, 2], [0, 3], [0, 3], [0, 2], [0, 1, 3, 2], [0, 1], [3, 1], [2, 1], [3, 2], []];
  const short = (value) => Math.round(value * 100) / 100;

  // Marching squares on pixel centres, with an empty border around the plane.
  function lines(values, width, height, level, path) {
    const wide = width + 2;
    for (let row = 0; row <= height; row++) {
      for (let column = 0, at = row * wide; column <= width; column++, at++) {
        const a = values[at], b = values[at + 1], c = values[at + wide + 1], d = values[at + wide];
        const kind = (a >= level ? 8 : 0) | (b >= level ? 4 : 0) | (c >= level ? 2 : 0) | (d >= level ? 1 : 0);
        if (kind === 0 || kind === 15) continue;
        const joined = JOINED[kind];
        for (let k = 0; k < joined.length; k++) {
          let x = column - 0.5, y = row - 0.5;
          switch (joined[k]) {
            case 0: x += (level - a) / (b - a); break;
            case 1: x += 1; y += (level - b) / (c - b); break;
            case 2: x += (level - d) / (c - d); y += 1; break;
            default: y += (level - a) / (d - a);
          }
          path.push(k % 2 ? "L" : "M", short(x), " ", short(y));
        }
      }
    }
  }

  function isolines(entry, plane, group) {
    const [width, height] = sizeOf(plane);
    const [first, right, down] = walk(plane);
    const wide = width + 2;
    const fields = [];
    const shown = Int32Array.from(entry.group, (group) => (isShown(group) ? group : -2));
    for (let row = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, pixel += right) {
        for (let k = 0, at = pixel; k < entry.kept; k++, at += total) {
          const code = entry.codes[at];
          if (code === 0) break;
          const own = shown[code];
          if (own < 0) continue;
          fields[own] ??= new Float32Array(wide * (height + 2));
          fields[own][(row + 1) * wide + column + 1] += entry.values[at] / scale;
        }
      }
    }
    const paths = [[], []];
    fields.forEach((field, own) => {
      for (const level of state.levels) lines(field, width, height, level, paths[Number(own === group)]);
    });
    return paths;
  }

  return (side, plane, group) => (data[side].values ? isolines(data[side], plane, group) : edges(data[side], plane, group)).map((path) => path.join(""));
}
