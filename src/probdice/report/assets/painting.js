"use strict";
// The colours of one plane: of a side by its regions, or of f.
const FADED = [196, 212, 230];

function painterOf({ data, sides, scale, strides, total, f, outside }, state) {
  const length = (axis) => (axis < 0 ? 1 : data.shape[axis]);
  const size = () => [length(state.plane.columns), length(state.plane.rows)];

  function offset() {
    return state.plane.across.reduce((sum, axis) => sum + state.here[axis] * strides[axis], 0);
  }

  // Where the first pixel of the plane is, and how far it is to the next column and row.
  function walk() {
    const { plane } = state;
    const [width, height] = size();
    const right = plane.columns < 0 ? 0 : strides[plane.columns];
    const down = plane.rows < 0 ? 0 : strides[plane.rows];
    const first = offset() + (plane.flipColumns ? (width - 1) * right : 0) + (plane.flipRows ? (height - 1) * down : 0);
    return [first, plane.flipColumns ? -right : right, plane.flipRows ? -down : down];
  }

  function shareOf(group, pixel) {
    let most = 0;
    for (const side of sides) {
      const { kept, values, codes, groups } = data[side];
      let share = 0;
      for (let at = pixel, k = 0; k < kept; k++, at += total) {
        const value = values ? values[at] : scale;
        if (value && groups[codes[at]] === group) share += value;
      }
      most = Math.max(most, share / scale);
    }
    return most;
  }

  function paintSide(side, image) {
    const entry = data[side];
    const { chosen } = selection;
    const [width, height] = size();
    const kept = state.mode === "likely" ? 1 : entry.kept;
    // What is not chosen fades to grey.
    const shown = entry.rgb.map((rgb, k) => (chosen === null || entry.groups[k] === chosen ? rgb : rgb.map((v) => 0.12 * v + 0.88 * 200)));
    const [first, right, down] = walk();
    let at = 0;
    for (let row = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, at += 4, pixel += right) {
        if (f[pixel] === outside) continue;
        let red = 0, green = 0, blue = 0, sum = 0;
        for (let k = 0; k < kept; k++) {
          const value = entry.values && state.mode !== "likely" ? entry.values[k * total + pixel] : 1;
          if (value === 0) break;
          const rgb = shown[entry.codes[k * total + pixel]];
          red += value * rgb[0]; green += value * rgb[1]; blue += value * rgb[2]; sum += value;
          if (!entry.values) break;
        }
        const white = state.mode === "f" ? f[pixel] / scale : 0;
        const share = sum ? (1 - white) / sum : 0;
        image[at] = red * share + 255 * white;
        image[at + 1] = green * share + 255 * white;
        image[at + 2] = blue * share + 255 * white;
        image[at + 3] = 255;
      }
    }
  }

  function paintSimilarity(image) {
    const { chosen } = selection;
    const [width, height] = size();
    const [first, right, down] = walk();
    let at = 0;
    for (let row = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, at += 4, pixel += right) {
        if (f[pixel] === outside) continue;
        const grey = (255 * f[pixel]) / scale;
        // What is not chosen fades to a blue, which no value of f has.
        const share = chosen === null ? 1 : Math.min(1, 0.1 + shareOf(chosen, pixel));
        for (let k = 0; k < 3; k++) image[at + k] = grey * share + FADED[k] * (1 - share);
        image[at + 3] = 255;
      }
    }
  }

  function paint(side, image) {
    if (side === "f") paintSimilarity(image);
    else paintSide(side, image);
  }

  return { size, paint };
}
