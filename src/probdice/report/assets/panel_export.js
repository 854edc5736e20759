"use strict";
// Create SVG elements and contours, and save panels as PNG and SVG.
const LINES = { reference: "#35b6ff", prediction: "#ffb000" }; // visible on grey, distinguishable with colour blindness
const FAINT = { width: 1, opacity: 0.55 }; // contours of groups that are not emphasised
const widthOf = (side) => (side === "reference" ? 3 : 2);

// Two paths per side: the contours of the emphasised group, and the contours of all other groups.
function contourPaths(sides) {
  const path = (side, look) => svg("path", { class: "contour", fill: "none", stroke: LINES[side], ...look });
  const faint = sides.map((side) => path(side, { "stroke-width": FAINT.width, "stroke-opacity": FAINT.opacity }));
  const strong = sides.map((side) => path(side, { "stroke-width": widthOf(side) }));
  return { all: [...faint, ...strong], of: Object.fromEntries(sides.map((side, k) => [side, [faint[k], strong[k]]])) };
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function exporterOf({ index }, state, { sizeOf }, frames) {
  function fileName(panel, suffix) {
    const at = panel.plane.across.map((axis) => index(state.point)[axis]);
    return saving.name(panel.content === "f" ? "similarity" : panel.content, panel.plane.name === "all" ? "" : panel.plane.name, ...at) + suffix;
  }

  function sizeOfPicture(panel) {
    const [, , w, h] = panel.window;
    const aspect = frames.aspectOf(panel.plane);
    const unit = Math.max(1, Math.ceil(900 / w));
    return [unit, aspect, Math.round(w * unit), Math.round(h * aspect * unit)];
  }

  function letters(panel, width, height) {
    const at = [[width / 2, 14], [width - 10, height / 2], [width / 2, height - 6], [10, height / 2]];
    return panel.plane.edges.map((letter, k) => [letter, ...at[k]]).filter(([letter]) => letter);
  }

  function savePng(panel) {
    const [x, y] = panel.window;
    const [unit, aspect, width, height] = sizeOfPicture(panel);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.setTransform(unit, 0, 0, unit * aspect, -x * unit, -y * unit * aspect);
    context.drawImage(panel.canvas, 0, 0);
    context.setTransform(1, 0, 0, 1, 0, 0);
    for (const line of panel.lines.all) {
      const path = new Path2D();
      path.addPath(new Path2D(line.getAttribute("d")), new DOMMatrix([unit, 0, 0, unit * aspect, -x * unit, -y * unit * aspect]));
      context.strokeStyle = line.getAttribute("stroke");
      context.globalAlpha = Number(line.getAttribute("stroke-opacity") ?? 1);
      context.lineWidth = (1 + Number(line.getAttribute("stroke-width"))) * Math.max(1, width / 1400);
      context.stroke(path);
    }
    context.globalAlpha = 1;
    context.font = "14px sans-serif";
    context.textAlign = "center";
    context.lineWidth = 3;
    for (const [letter, left, top] of letters(panel, width, height)) {
      context.strokeStyle = "#fff";
      context.strokeText(letter, left, top);
      context.fillText(letter, left, top);
    }
    canvas.toBlob((blob) => saving.save(fileName(panel, ".png"), blob));
  }

  function saveSvg(panel) {
    const [x, y, w, h] = panel.window;
    const [, , width, height] = sizeOfPicture(panel);
    const picture = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` });
    const inner = svg("svg", { width, height, viewBox: `${x} ${y} ${w} ${h}`, preserveAspectRatio: "none" });
    const [columns, rows] = sizeOf(panel.plane);
    inner.append(svg("image", { href: panel.canvas.toDataURL("image/png"), width: columns, height: rows, preserveAspectRatio: "none", "image-rendering": "pixelated" }));
    for (const line of panel.lines.all) {
      if (!line.getAttribute("d")) continue;
      const copy = line.cloneNode();
      copy.setAttribute("vector-effect", "non-scaling-stroke");
      inner.append(copy);
    }
    picture.append(inner);
    for (const [letter, left, top] of letters(panel, width, height)) {
      const text = svg("text", { x: left, y: top, "text-anchor": "middle", "font-family": "sans-serif", "font-size": 14, stroke: "#fff", "stroke-width": 3, "paint-order": "stroke" });
      text.textContent = letter;
      picture.append(text);
    }
    saving.save(fileName(panel, ".svg"), new XMLSerializer().serializeToString(picture), "image/svg+xml");
  }

  return { savePng, saveSvg };
}
