"use strict";
// The outlines of one side in a plane, as the path of an SVG in pixels of the plane: of label maps
// along the edges of pixels, of probabilities the lines on which a group has a chosen probability.
function contoursOf({ data, scale, total }, state, { sizeOf, walk }) {
  const isShown = (group) => group >= -1 && group !== data.background && (selection.chosen === null || group === selection.chosen);

  function edges(entry, plane) {
    const [width, height] = sizeOf(plane);
    const [first, right, down] = walk(plane);
    // A frame of nothing around the plane closes what touches its border.
    const wide = width + 2;
    const groups = new Int32Array(wide * (height + 2)).fill(-9);
    for (let row = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, pixel += right) {
        const group = entry.group[entry.codes[pixel]];
        if (isShown(group)) groups[(row + 1) * wide + column + 1] = group;
      }
    }
    const path = [];
    for (let row = 0; row <= height; row++) {
      for (let column = 0, start = -1; column <= width; column++) {
        const at = row * wide + column + 1;
        const edge = column < width && groups[at] !== groups[at + wide];
        if (edge && start < 0) start = column;
        if (!edge && start >= 0) {
          path.push(`M${start} ${row}H${column}`);
          start = -1;
        }
      }
    }
    for (let column = 0; column <= width; column++) {
      for (let row = 0, start = -1; row <= height; row++) {
        const at = (row + 1) * wide + column;
        const edge = row < height && groups[at] !== groups[at + 1];
        if (edge && start < 0) start = row;
        if (!edge && start >= 0) {
          path.push(`M${column} ${start}V${row}`);
          start = -1;
        }
      }
    }
    return path;
  }

  // Marching squares on the centres of pixels, with nothing around the plane.
  function lines(values, width, height, level, path) {
    const wide = width + 2;
    for (let row = 0; row <= height; row++) {
      for (let column = 0, at = row * wide; column <= width; column++, at++) {
        const [a, b, c, d] = [values[at], values[at + 1], values[at + wide + 1], values[at + wide]];
        const kind = (a >= level ? 8 : 0) | (b >= level ? 4 : 0) | (c >= level ? 2 : 0) | (d >= level ? 1 : 0);
        if (kind === 0 || kind === 15) continue;
        const [x, y] = [column - 0.5, row - 0.5];
        const part = (from, to) => (level - from) / (to - from);
        const point = { t: () => [x + part(a, b), y], r: () => [x + 1, y + part(b, c)], b: () => [x + part(d, c), y + 1], l: () => [x, y + part(a, d)] };
        for (const pair of ["", "lb", "br", "lr", "tr", "tlbr", "tb", "tl", "tl", "tb", "trlb", "tr", "lr", "br", "lb"][kind].match(/../g)) {
          const [one, two] = [point[pair[0]](), point[pair[1]]()];
          path.push(`M${one[0].toFixed(2)} ${one[1].toFixed(2)}L${two[0].toFixed(2)} ${two[1].toFixed(2)}`);
        }
      }
    }
  }

  function isolines(entry, plane) {
    const [width, height] = sizeOf(plane);
    const [first, right, down] = walk(plane);
    const wide = width + 2;
    const fields = new Map();
    for (let row = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, pixel += right) {
        for (let k = 0, at = pixel; k < entry.kept; k++, at += total) {
          const code = entry.codes[at];
          if (code === 0) break;
          const group = entry.group[code];
          if (!isShown(group)) continue;
          let field = fields.get(group);
          if (!field) fields.set(group, (field = new Float32Array(wide * (height + 2))));
          field[(row + 1) * wide + column + 1] += entry.values[at] / scale;
        }
      }
    }
    const path = [];
    for (const field of fields.values()) for (const level of state.levels) lines(field, width, height, level, path);
    return path;
  }

  return (side, plane) => (data[side].values ? isolines(data[side], plane) : edges(data[side], plane)).join("");
}
