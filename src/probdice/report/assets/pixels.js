"use strict";
// The pixels of the page, unpacked once, and functions to read them.
const pixels = (async () => {
  const data = JSON.parse(document.getElementById("pixels").textContent);
  const sides = ["reference", "prediction"];
  const scale = 10 ** data.digits;
  const strides = data.shape.map((_, axis) => data.shape.slice(axis + 1).reduce((a, b) => a * b, 1));
  const total = data.shape.reduce((a, b) => a * b, 1);
  const outside = data.digits > 2 ? 65535 : 255;

  async function unpack(text, wide) {
    const bytes = await unpackBytes(text);
    return wide ? new Uint16Array(bytes) : new Uint8Array(bytes);
  }

  const colour = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const f = data.f ? await unpack(data.f, data.digits > 2) : null;
  for (const side of sides) {
    const entry = data[side];
    entry.codes = await unpack(entry.codes, entry.wide);
    entry.values = entry.values ? await unpack(entry.values, data.digits > 2) : null;
    // Region codes start at 1. Code 0 means no region and no group.
    entry.rgb = [[0, 0, 0], ...entry.colours.map(colour)];
    entry.group = Int32Array.from([-2, ...entry.groups]);
  }
  for (const image of data.images) {
    image.values = await unpack(image.values, image.wide);
    image.strides = image.shape.map((_, axis) => image.shape.slice(axis + 1).reduce((a, b) => a * b, image.colour ? 3 : 1));
  }

  // The distance between the outlines at each outline pixel, in steps from 1; 0 elsewhere.
  if (data.distances) {
    const { distances } = data;
    const [places, steps] = [new Uint32Array(await unpackBytes(distances.pixels)), new Uint8Array(await unpackBytes(distances.values))];
    distances.values = new Uint8Array(total);
    places.forEach((pixel, k) => { distances.values[pixel] = steps[k]; });
  }
  const distance = (pixel) => (data.distances?.values[pixel] ? ((data.distances.values[pixel] - 1) / 254) * data.distances.most : null);

  // f at a pixel, from 0 to 1; −1 if the pixel was not compared.
  const { reference, prediction } = data;
  function similarity(pixel) {
    if (f) return f[pixel] === outside ? -1 : f[pixel] / scale;
    const code = reference.codes[pixel];
    if (code === 0) return -1;
    return reference.group[code] === prediction.group[prediction.codes[pixel]] ? 1 : data.apart;
  }

  // The probability of a group at a pixel of one side, from 0 to 1.
  function share(side, group, pixel) {
    const { kept, values, codes, group: groups } = data[side];
    if (!values) return groups[codes[pixel]] === group ? 1 : 0;
    let sum = 0;
    for (let at = pixel, k = 0; k < kept; k++, at += total) if (groups[codes[at]] === group) sum += values[at];
    return sum / scale;
  }

  // The regions of a pixel, most probable first, as [region, value].
  function regionsAt(side, pixel) {
    const entry = data[side];
    const regions = [];
    for (let k = 0; k < entry.kept; k++) {
      const code = entry.codes[k * total + pixel];
      if (code) regions.push([code - 1, entry.values ? entry.values[k * total + pixel] : scale]);
    }
    return regions;
  }

  const pixelAt = (point) => point.reduce((sum, k, axis) => sum + k * strides[axis], 0);
  const number = (value) => decimal(value, data.crisp ? 4 : data.digits);

  // The indices of a pixel in the image, and its position in millimetres if known.
  const index = (point) => point.map((k) => k * data.step);
  function millimetres(point) {
    if (!data.affine) return null;
    const place = index(point);
    return data.affine.slice(0, -1).map((row) => row.reduce((sum, value, k) => sum + value * (k < place.length ? place[k] : 1), 0));
  }

  return { data, sides, scale, strides, total, similarity, distance, share, regionsAt, pixelAt, number, index, millimetres };
})();
