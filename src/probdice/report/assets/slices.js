"use strict";
// Slices of several layers, changed by one slider: regions, fractions and outlines on an image.
(async () => {
  const data = JSON.parse(document.getElementById("slices").textContent);
  const { width, height } = data;
  const [[top, bottom], [left, right]] = data.frame; // the displayed part of every slice
  const [high, wide] = [bottom - top + 1, right - left + 1];
  const pixels = width * height;
  const FINE = 560; // smallest width of a canvas in pixels, so that outlines are thin
  const OUTSIDE = 255;
  const DIFFERENT = [255, 46, 99];
  const night = matchMedia("(prefers-color-scheme: dark)");
  let same = null; // the colour of similarity 1
  const RAMPS = {
    fire: [[0, 0, 4], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]],
  };
  const rgb = (text) => (text ? [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)) : null);

  for (const layer of Object.values(data.layers)) {
    const buffer = await unpackBytes(layer.codes ?? layer.values);
    layer.bytes = layer.wide ? new Uint16Array(buffer) : new Uint8Array(buffer);
    if (layer.colours) layer.shades = layer.colours.map(rgb);
  }
  if (data.image) data.image.bytes = new Uint8Array(await unpackBytes(data.image.values));

  function ramp(name, share) {
    const colours = RAMPS[name] ?? [DIFFERENT, same];
    const at = share * (colours.length - 1);
    const k = Math.min(Math.floor(at), colours.length - 2);
    return colours[k].map((value, channel) => value + (at - k) * (colours[k + 1][channel] - value));
  }

  // The image, or light grey without an image.
  function paintImage(target, slice) {
    for (let k = 0; k < pixels; k++) {
      const at = slice * pixels + k;
      for (let channel = 0; channel < 3; channel++) {
        target[4 * k + channel] = !data.image ? 240 : data.image.bytes[data.image.colour ? 3 * at + channel : at];
      }
      target[4 * k + 3] = 255;
    }
  }

  function mix(target, k, colour, opacity) {
    for (let channel = 0; channel < 3; channel++) {
      target[4 * k + channel] += opacity * (colour[channel] - target[4 * k + channel]);
    }
  }

  function paintRegions(target, layer, slice, opacity) {
    for (let k = 0; k < pixels; k++) {
      const code = layer.bytes[slice * pixels + k];
      const colour = code ? layer.shades[code - 1] : null;
      if (colour) mix(target, k, colour, opacity);
    }
  }

  // On an image, pixels with similarity 1 keep the colour of the image.
  function paintDifferences(target, layer, slice, opacity) {
    for (let k = 0; k < pixels; k++) {
      const value = layer.bytes[slice * pixels + k];
      if (value !== OUTSIDE) mix(target, k, DIFFERENT, (1 - value / (OUTSIDE - 1)) * opacity);
    }
  }

  function paintFractions(target, layer, slice) {
    const colours = Array.from({ length: OUTSIDE }, (_, value) => ramp(layer.ramp, value / (OUTSIDE - 1)));
    for (let k = 0; k < pixels; k++) {
      const value = layer.bytes[slice * pixels + k];
      mix(target, k, value === OUTSIDE ? [240, 240, 240] : colours[value], 1);
    }
  }

  // Outlines follow the edges of pixels. `colourOf` returns the colour of the edge of a region.
  function drawOutlines(context, layer, slice, scale, tall, thickness, colourOf) {
    const first = slice * pixels;
    const paths = new Map();
    const code = (row, column) => (row < 0 || column < 0 || row >= height || column >= width ? -1 : layer.bytes[first + row * width + column]);
    const edge = (one, two, x, y, right, down) => {
      if (one === two || one < 0 || two < 0) return;
      const colour = colourOf(one) ?? colourOf(two);
      if (!colour) return;
      if (!paths.has(colour)) paths.set(colour, new Path2D());
      paths.get(colour).moveTo(x * scale, y * tall);
      paths.get(colour).lineTo((x + right) * scale, (y + down) * tall);
    };
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        const own = code(row, column);
        edge(own, code(row, column + 1), column + 1, row, 0, 1);
        edge(own, code(row + 1, column), column, row + 1, 1, 0);
      }
    }
    context.lineWidth = thickness;
    for (const [colour, path] of paths) {
      context.strokeStyle = colour;
      context.stroke(path);
    }
  }

  function paint(canvas, slice) {
    const layer = data.layers[canvas.dataset.layer];
    const outlines = data.outlines?.[canvas.dataset.layer];
    const share = Number(document.getElementById("opacity")?.value ?? 100) / 100;
    const small = new OffscreenCanvas(width, height);
    const content = new ImageData(width, height);
    paintImage(content.data, slice);
    if (outlines) {
      if (!data.image) paintRegions(content.data, data.layers[outlines.under], slice, 0.25);
    } else if (layer?.shades) paintRegions(content.data, layer, slice, share);
    else if (layer?.ramp === "similarity" && data.image) paintDifferences(content.data, layer, slice, Math.min(1, 2 * share));
    else if (layer) paintFractions(content.data, layer, slice);
    small.getContext("2d").putImageData(content, 0, 0);
    const scale = Math.max(1, Math.ceil(FINE / wide));
    canvas.width = wide * scale;
    canvas.height = Math.max(1, Math.round(high * scale * data.aspect));
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(small, left, top, wide, high, 0, 0, canvas.width, canvas.height);
    const tall = canvas.height / high;
    context.translate(-left * scale, -top * tall);
    const thickness = Math.max(1.5, canvas.width / 320);
    if (outlines) {
      const chosen = Number(document.getElementById("outlined").value) || null;
      for (const { layer: name, colour } of outlines.lines) {
        drawOutlines(context, data.layers[name], slice, scale, tall, thickness, (code) => (chosen === null || code === chosen ? colour : null));
      }
    } else if (data.image && layer?.shades) {
      drawOutlines(context, layer, slice, scale, tall, thickness, (code) => (code ? layer.colours[code - 1] || null : null));
    }
    if (slice === data.start && !(document.getElementById("outlined")?.selectedIndex > 0)) drawRing(context, scale, tall);
  }

  // A ring around the worst place, which is in the first slice shown.
  function drawRing(context, scale, tall) {
    const [row, column] = data.mark;
    context.beginPath();
    context.arc((column + 0.5) * scale, (row + 0.5) * tall, context.canvas.width / 22, 0, 2 * Math.PI);
    for (const [colour, share] of [["#000", 80], ["#ffe800", 160]]) {
      context.strokeStyle = colour;
      context.lineWidth = context.canvas.width / share;
      context.stroke();
    }
  }

  const slider = document.getElementById("slice");
  document.getElementById("slice-field").hidden = data.names.length === 1;
  function show(dark = night.matches) {
    same = dark ? [30, 35, 39] : [255, 255, 255];
    const slice = Number(slider.value);
    for (const canvas of document.querySelectorAll("canvas.slice")) paint(canvas, slice);
    document.getElementById("where").textContent = data.names[slice];
    slider.setAttribute("aria-valuetext", data.names[slice]);
  }
  for (const input of document.querySelectorAll("#slice, #opacity, #outlined")) input.addEventListener("input", () => show());
  night.addEventListener("change", () => show());
  // Printing uses the light theme.
  for (const kind of ["beforeprint", "afterprint"]) window.addEventListener(kind, () => night.matches && show(kind === "afterprint"));
  show();
  document.body.dataset.ready = "yes";
})();
