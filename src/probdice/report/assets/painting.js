"use strict";
// The colours of one plane: the regions of a side, the similarity f, or the image alone.
const APART = [255, 46, 99]; // colour of differences: similarity 0
const RAMP = [[56, 149, 255], [150, 122, 240], [214, 88, 196], APART]; // distances, near to far; visible on black and on white

function painterOf({ data, scale, strides, total, similarity, share }, state) {
  const length = (axis) => (axis < 0 ? 1 : data.shape[axis]);
  const sizeOf = (plane) => [length(plane.columns), length(plane.rows)];

  // The offset of the first pixel of a plane, and the strides of its columns and rows.
  function walk(plane) {
    const [width, height] = sizeOf(plane);
    const right = plane.columns < 0 ? 0 : strides[plane.columns];
    const down = plane.rows < 0 ? 0 : strides[plane.rows];
    let first = plane.across.reduce((sum, axis) => sum + state.point[axis] * strides[axis], 0);
    first += (plane.flipColumns ? (width - 1) * right : 0) + (plane.flipRows ? (height - 1) * down : 0);
    return [first, plane.flipColumns ? -right : right, plane.flipRows ? -down : down];
  }

  // The displayed grey values or colours of an image in a plane, three bytes per pixel. The panels
  // of one plane share these values.
  const drawn = new Map();
  function under(plane) {
    const what = [state.image, ...state.window, ...plane.across.map((axis) => state.point[axis])].join();
    if (drawn.get(plane)?.what !== what) drawn.set(plane, { what, bytes: shadesOf(plane) });
    return drawn.get(plane).bytes;
  }

  function shadesOf(plane) {
    const image = data.images[state.image];
    const [width, height] = sizeOf(plane);
    const place = (axis, k) => Math.min(image.shape[axis] - 1, Math.floor((k * data.step) / image.step)) * image.strides[axis];
    const along = (axis, count, flip) => Int32Array.from({ length: count }, (_, k) => (axis < 0 ? 0 : place(axis, flip ? count - 1 - k : k)));
    const columns = along(plane.columns, width, plane.flipColumns);
    const rows = along(plane.rows, height, plane.flipRows);
    const first = plane.across.reduce((sum, axis) => sum + place(axis, state.point[axis]), 0);
    const [low, high] = state.window;
    const shades = Uint8ClampedArray.from({ length: image.levels + 1 }, (_, k) => (255 * (image.low + ((image.high - image.low) * k) / image.levels - low)) / (high - low));
    const bytes = new Uint8ClampedArray(3 * width * height);
    const next = image.colour ? 1 : 0;
    for (let row = 0, at = 0; row < height; row++) {
      for (let column = 0; column < width; column++, at += 3) {
        const from = first + rows[row] + columns[column];
        bytes[at] = shades[image.values[from]];
        bytes[at + 1] = shades[image.values[from + next]];
        bytes[at + 2] = shades[image.values[from + 2 * next]];
      }
    }
    return bytes;
  }

  // The empty colour: white in the light theme, dark in the dark theme.
  const blank = () => (state.dark ? [30, 35, 39] : [255, 255, 255]);
  const faded = () => (state.dark ? [62, 68, 74] : [200, 200, 200]);

  function paintSide(side, plane, image) {
    const entry = data[side];
    const { chosen } = selection;
    const [width, height] = sizeOf(plane);
    const shown = state.image < 0 ? null : under(plane);
    const kept = state.mode === "likely" || !entry.values ? 1 : entry.kept;
    const differing = state.mode === "f";
    // Without an image, groups that are not selected fade. On an image, these groups and the
    // background are not painted.
    const quiet = (k) => (shown !== null && entry.group[k] === data.background) || (chosen !== null && entry.group[k] !== chosen);
    const alphas = Float32Array.from(entry.rgb, (_, k) => (quiet(k) ? 0 : 1));
    const [back, grey] = [blank(), faded()];
    const colours = entry.rgb.map((rgb, k) => (shown === null && alphas[k] === 0 ? rgb.map((v, c) => 0.12 * v + 0.88 * grey[c]) : rgb));
    const [first, right, down] = walk(plane);
    for (let row = 0, at = 0, from = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, at += 4, from += 3, pixel += right) {
        const value = differing || !entry.codes[pixel] ? similarity(pixel) : 1;
        if (value < 0) {
          if (shown) {
            image[at] = shown[from]; image[at + 1] = shown[from + 1]; image[at + 2] = shown[from + 2]; image[at + 3] = 255;
          }
          continue;
        }
        let red = 0, green = 0, blue = 0, sum = 0, alpha = 0;
        for (let k = 0; k < kept; k++) {
          const code = entry.codes[k * total + pixel];
          if (code === 0) break;
          const part = kept > 1 ? entry.values[k * total + pixel] : 1;
          const rgb = colours[code];
          const seen = shown ? part * alphas[code] : part;
          red += seen * rgb[0]; green += seen * rgb[1]; blue += seen * rgb[2]; alpha += seen; sum += part;
        }
        if (alpha > 0) { red /= alpha; green /= alpha; blue /= alpha; }
        let cover = sum > 0 ? alpha / sum : 0;
        if (differing) cover *= 1 - value;
        if (shown) cover *= state.opacity;
        image[at] = red * cover + (shown ? shown[from] : back[0]) * (1 - cover);
        image[at + 1] = green * cover + (shown ? shown[from + 1] : back[1]) * (1 - cover);
        image[at + 2] = blue * cover + (shown ? shown[from + 2] : back[2]) * (1 - cover);
        image[at + 3] = 255;
      }
    }
  }

  // Returns the mean of f over the plane.
  function paintSimilarity(plane, image) {
    const { chosen } = selection;
    const [width, height] = sizeOf(plane);
    const shown = state.image < 0 ? null : under(plane);
    const [first, right, down] = walk(plane);
    const [one, grey] = [blank(), state.dark ? [40, 56, 74] : [196, 212, 230]];
    let [sum, count] = [0, 0];
    for (let row = 0, at = 0, from = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, at += 4, from += 3, pixel += right) {
        const value = similarity(pixel);
        if (value >= 0) { sum += value; count++; }
        if (value < 0 && !shown) continue;
        // Pixels outside the selected group fade to a blue that no value of f has.
        const part = chosen === null || value < 0 ? 1 : Math.min(1, Math.max(share("reference", chosen, pixel), share("prediction", chosen, pixel)) + (shown ? 0 : 0.1));
        for (let k = 0; k < 3; k++) {
          if (shown) {
            const cover = value < 0 ? 0 : (1 - value) * part * Math.min(1, state.opacity * 1.4);
            image[at + k] = shown[from + k] * (1 - cover) + APART[k] * cover;
          } else {
            image[at + k] = (value * one[k] + (1 - value) * APART[k]) * part + grey[k] * (1 - part);
          }
        }
        image[at + 3] = 255;
      }
    }
    return count ? sum / count : null;
  }

  function paintImage(plane, image) {
    const shown = under(plane);
    for (let at = 0, from = 0; from < shown.length; at += 4, from += 3) {
      image[at] = shown[from]; image[at + 1] = shown[from + 1]; image[at + 2] = shown[from + 2]; image[at + 3] = 255;
    }
  }

  // Outlines coloured by their distance to the other outline, on the image or on regions that differ.
  function paintDistances(plane, image) {
    const [width, height] = sizeOf(plane);
    const [first, right, down] = walk(plane);
    const shown = state.image < 0 ? null : under(plane);
    const [back, grey] = [blank(), faded()];
    for (let row = 0, at = 0, from = 0; row < height; row++) {
      for (let column = 0, pixel = first + row * down; column < width; column++, at += 4, from += 3, pixel += right) {
        const step = data.distances.values[pixel];
        const place = ((step - 1) / 254) * (RAMP.length - 1);
        const low = Math.min(RAMP.length - 2, Math.floor(place));
        for (let k = 0; k < 3; k++) {
          if (step) image[at + k] = RAMP[low][k] + (place - low) * (RAMP[low + 1][k] - RAMP[low][k]);
          else if (shown) image[at + k] = shown[from + k];
          else image[at + k] = similarity(pixel) < 0.5 ? grey[k] : back[k];
        }
        image[at + 3] = 255;
      }
    }
  }

  function paint(content, plane, image) {
    if (content === "f") return paintSimilarity(plane, image);
    if (content === "contours") paintImage(plane, image);
    else if (content === "distances") paintDistances(plane, image);
    else paintSide(content, plane, image);
    return null;
  }

  return { sizeOf, walk, paint };
}
