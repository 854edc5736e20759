"use strict";
// The pixels that the page carries: unpacked once, then asked.
const pixels = (async () => {
  const data = JSON.parse(document.getElementById("pixels").textContent);
  const sides = ["reference", "prediction"];
  const scale = 10 ** data.digits;
  const strides = data.shape.map((_, axis) => data.shape.slice(axis + 1).reduce((a, b) => a * b, 1));
  const total = data.shape.reduce((a, b) => a * b, 1);

  async function unpack(text, wide) {
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = await new Response(stream).arrayBuffer();
    return wide ? new Uint16Array(bytes) : new Uint8Array(bytes);
  }

  const colour = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const f = await unpack(data.f, data.digits > 2);
  const outside = data.digits > 2 ? 65535 : 255;
  for (const side of sides) {
    const entry = data[side];
    entry.codes = await unpack(entry.codes, entry.wide);
    entry.values = entry.values ? await unpack(entry.values, data.digits > 2) : null;
    entry.rgb = entry.colours.map(colour);
  }

  const number = (value) => decimal(value / scale, data.digits);

  // The regions of a pixel, largest first, as [region, value].
  function regionsAt(side, pixel) {
    const entry = data[side];
    const found = [];
    for (let k = 0; k < entry.kept; k++) {
      const value = entry.values ? entry.values[k * total + pixel] : scale;
      if (value > 0) found.push([entry.codes[k * total + pixel], value]);
    }
    return found;
  }

  return { data, sides, scale, strides, total, f, outside, number, regionsAt };
})();
