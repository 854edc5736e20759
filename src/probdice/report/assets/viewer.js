"use strict";
// The image viewer: panels of one or three planes, which share the cross-hair, slices and zoom.
(async () => {
  const loaded = await pixels.catch(() => null);
  const box = document.querySelector(".panels");
  const stage = box.parentElement;
  if (loaded === null) {
    box.textContent = "This browser is too old to display the images.";
    return;
  }
  const { data, sides, similarity, distance, regionsAt, pixelAt, number, index, millimetres } = loaded;
  const axes = data.shape.length;
  const RING = 0.05; // radius of the ring around a place of differences, as a share of the width
  const NAMES = { contours: "Contours", reference: "Reference", prediction: "Prediction", f: "Similarity", distances: "Distances" };
  const CONTENTS = [...(data.images.length ? ["contours"] : []), "reference", "prediction", "f", ...(data.distances ? ["distances"] : [])];
  const night = matchMedia("(prefers-color-scheme: dark)");
  const state = {
    mode: "probabilities", plane: data.plane, all: false, content: CONTENTS[0], point: [], centre: [], zoom: 1,
    image: data.images.length ? 0 : -1, opacity: 0.5, window: data.images[0]?.window.slice() ?? [0, 1], levels: [0.5],
    dark: night.matches, hover: null, place: 0,
  };
  const painter = painterOf(loaded, state);
  const frames = framesOf(loaded, state, painter);
  const contours = contoursOf(loaded, state, painter);
  const { savePng, saveSvg } = exporterOf(loaded, state, painter, frames);
  const places = placesOf(loaded);
  const { sizeOf } = painter;
  const $ = (id) => document.getElementById(id);
  const bounded = (value, low, high) => Math.min(high, Math.max(low, value));
  const middle = () => data.frame.map(([first, last]) => (first + last) / 2);
  let panels = [];
  let layout = null; // shape and widths of the frames

  // --- elements

  function make(tag, className = "", text = "") {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text) element.textContent = text;
    return element;
  }

  function button(text, label, act) {
    const element = make("button", "tiny", text);
    element.type = "button";
    element.setAttribute("aria-label", label);
    element.addEventListener("click", act);
    return element;
  }

  // --- panels

  function planes() {
    return state.all ? data.planes : [data.planes[state.plane]];
  }

  function build() {
    const wanted = state.all ? data.planes.map((plane) => [state.content, plane]) : CONTENTS.map((content) => [content, planes()[0]]);
    panels = wanted.map(([content, plane]) => panelOf(content, plane));
    box.replaceChildren(...panels.map((panel) => panel.figure));
    stage.style.setProperty("--panels", panels.length);
    stage.classList.toggle("many", panels.length > 4);
    $("contents").hidden = !state.all;
    $("sliders").replaceChildren(...[...new Set(planes().flatMap((plane) => plane.across))].map(slider));
    paint();
  }

  function panelOf(content, plane) {
    const figure = make("figure", "panel");
    figure.dataset.side = content;
    figure.dataset.plane = plane.name;
    const caption = make("figcaption");
    const title = make("span", "title", state.all ? plane.name : NAMES[content]);
    const about = make("span", "about");
    const name = plane.name === "all" ? NAMES[content] : `${NAMES[content]}, ${plane.name}`;
    const panel = { content, plane, figure, about, name };
    const tools = make("span", "tools");
    tools.append(button("PNG", `Save ${name} as PNG`, () => savePng(panel)), button("SVG", `Save ${name} as SVG`, () => saveSvg(panel)));
    caption.append(title, about, tools);
    panel.frame = make("div", "frame");
    panel.canvas = make("canvas");
    panel.canvas.tabIndex = 0;
    panel.canvas.setAttribute("role", "img");
    panel.canvas.setAttribute("aria-label", name);
    panel.canvas.setAttribute("aria-describedby", "keys");
    panel.overlay = svg("svg", { class: "overlay", preserveAspectRatio: "none", "aria-hidden": "true" });
    panel.lines = contourPaths(sides);
    panel.cross = [svg("path", { class: "cross wide" }), svg("path", { class: "cross" })];
    panel.rings = [svg("ellipse", { class: "ring wide" }), svg("ellipse", { class: "ring" })];
    panel.overlay.append(...panel.lines.all, ...panel.cross, ...panel.rings);
    panel.frame.append(panel.canvas, panel.overlay);
    plane.edges.forEach((letter, k) => {
      if (letter) panel.frame.append(make("span", `edge ${["top", "right", "bottom", "left"][k]}`, letter));
    });
    figure.append(caption, panel.frame);
    listenTo(panel);
    return panel;
  }

  function describe(panel, mean) {
    const { content, about } = panel;
    about.replaceChildren();
    if (content === "f") {
      if (mean !== null && axes > 2) about.append(make("span", "mean", `slice ${number(mean)}`));
      const ramp = make("span", "ramp");
      ramp.setAttribute("role", "img");
      ramp.setAttribute("aria-label", "from 0 (red) to 1 (equal)");
      ramp.append(make("span", "", "0"), make("i"), make("span", "", "1"));
      about.append(ramp);
    } else if (content === "distances") {
      const ramp = make("span", "ramp distance");
      const most = `${data.distances.above ? "≥ " : ""}${decimal(data.distances.most, 1)} ${data.distances.unit}`;
      ramp.setAttribute("role", "img");
      ramp.setAttribute("aria-label", `distance to the other outline, from 0 (blue) to ${most} (red)`);
      ramp.append(make("span", "", "0"), make("i"), make("span", "", most));
      about.append(ramp);
    } else if (content === "contours") {
      for (const side of sides) {
        const key = make("span", `key-${side}`, side);
        about.append(key);
      }
    }
  }

  function paint() {
    for (const panel of panels) {
      const { canvas, content, plane } = panel;
      const [width, height] = sizeOf(plane);
      if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
      // The canvas is painted pixel by pixel, which is faster in main memory than on the GPU.
      const context = canvas.getContext("2d", { willReadFrequently: true });
      const image = context.createImageData(width, height);
      describe(panel, painter.paint(content, plane, image.data));
      context.putImageData(image, 0, 0);
    }
    drawContours();
    arrange();
    showValues();
  }

  // The contours of the group at the place or at the cross-hair are emphasised.
  let emphasised = null;
  function drawContours() {
    emphasised = groupInFocus();
    for (const { content, plane, lines } of panels) {
      if (content !== "contours") continue;
      for (const side of sides) contours(side, plane, emphasised).forEach((d, k) => lines.of[side][k].setAttribute("d", d));
    }
  }

  // Position images and cross-hair in their frames, in fractions of the frame.
  function arrange() {
    layout = frames.shared(planes());
    stage.style.setProperty("--shape", layout.shape);
    stage.classList.toggle("tall", layout.shape < 0.85);
    stage.classList.toggle("wide", layout.shape > 1.6);
    stage.classList.toggle("planes", state.all);
    panels.forEach((panel) => {
      const { plane, frame, canvas, overlay, cross, rings } = panel;
      const [width, height] = sizeOf(plane);
      const [x, y, w, h] = frames.windowOf(plane, layout.shape, layout.widths[planes().indexOf(plane)]);
      panel.window = [x, y, w, h];
      frame.style.aspectRatio = layout.shape;
      const percent = (value) => `${100 * value}%`;
      Object.assign(canvas.style, { left: percent(-x / w), top: percent(-y / h), width: percent(width / w), height: percent(height / h) });
      overlay.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
      const [column, row] = frames.inPlane(plane, state.point);
      const isPlace = atPlace();
      const gap = isPlace ? RING : 0.03;
      const [gx, gy] = [Math.max(w * gap, 0.7), Math.max(h * gap * layout.shape, 0.7)];
      const d = `M${x} ${row}H${column - gx}M${column + gx} ${row}H${x + w}M${column} ${y}V${row - gy}M${column} ${row + gy}V${y + h}`;
      for (const path of cross) path.setAttribute("d", d);
      for (const ring of rings) {
        ring.style.display = isPlace ? "" : "none";
        for (const [name, value] of Object.entries({ cx: column, cy: row, rx: gx, ry: gy })) ring.setAttribute(name, value);
      }
      frame.classList.toggle("zoomed", state.zoom > 1);
    });
    $("zoom-reset").textContent = Math.abs(state.zoom - 1) < 0.01 ? "Fit" : `${Number(state.zoom.toPrecision(2))}×`;
    remember();
  }

  // --- values below the panels

  function listOf(side, pixel) {
    const list = make("ol");
    const entry = data[side];
    const regions = similarity(pixel) < 0 ? [] : regionsAt(side, pixel);
    for (const [region, value] of regions) {
      const line = make("li");
      const chip = make("span", "chip");
      chip.style.background = entry.colours[region];
      const level = make("span", "level");
      const bar = make("i");
      bar.style.width = `${(100 * value) / loaded.scale}%`;
      level.append(bar);
      const name = make("span", "name", entry.names[region]);
      name.title = entry.names[region];
      line.append(chip, name);
      if (entry.values) line.append(level, make("span", "amount", decimal(value / loaded.scale, data.digits)));
      list.append(line);
    }
    list.style.minHeight = `${1.5 * Math.min(entry.kept, entry.names.length)}rem`;
    return list;
  }

  const signed = (value) => value.toFixed(1).replace("-", "−");
  const coordinates = (point) => `(${index(point).join(", ")})`;
  function whereIs(point) {
    const place = millimetres(point);
    return `${coordinates(point)}${place ? ` · ${place.map(signed).join(", ")} mm` : ""}`;
  }

  function valueOfImage(point) {
    const image = data.images[state.image];
    if (!image) return "";
    const at = point.reduce((sum, k, axis) => sum + Math.min(image.shape[axis] - 1, Math.floor((k * data.step) / image.step)) * image.strides[axis], 0);
    const value = (k) => Number((image.low + ((image.high - image.low) * image.values[at + k]) / image.levels).toPrecision(4));
    return image.colour ? [0, 1, 2].map(value).join(", ") : String(value(0));
  }

  function showValues() {
    const point = state.hover ?? state.point;
    const pixel = pixelAt(point);
    const value = similarity(pixel);
    for (const side of sides) $(`values-${side}`).replaceChildren(listOf(side, pixel));
    const big = make("span", "big", value < 0 ? "not compared" : number(value));
    big.id = "similarity";
    const lines = [make("span", "", "Similarity "), big];
    $("where").textContent = whereIs(point);
    const far = distance(pixel);
    if (far !== null) lines.push(make("span", "under", `distance between outlines: ${far === data.distances.most && data.distances.above ? "at least " : ""}${decimal(far, 2)} ${data.distances.unit}`));
    if (state.image >= 0) lines.push(make("span", "under", `${data.images[state.image].name}: ${valueOfImage(point)}`));
    $("values-f").replaceChildren(...lines);
    dicePlot.point(state.hover === null && atPlace() ? groupOfPlace() : groupAt(pixel, value));
  }

  // The group of a pixel in the reference, or in the prediction if the reference is background.
  function groupAt(pixel, value) {
    if (value < 0) return null;
    const groups = sides.map((side) => data[side].groups[regionsAt(side, pixel)[0]?.[0]]);
    return groups.find((group) => group >= 0 && group !== data.background) ?? groups[0] ?? null;
  }

  function announce() {
    const pixel = pixelAt(state.point);
    const texts = sides.map((side) => `${side}: ${regionsAt(side, pixel).map(([region, value]) => `${data[side].names[region]} ${decimal(value / loaded.scale, data.digits)}`).join(", ")}`);
    const value = similarity(pixel);
    $("announcement").textContent = `${data.pixel} ${coordinates(state.point)}: ${value < 0 ? "not compared" : `similarity ${number(value)}; ${texts.join("; ")}`}`;
  }

  // --- navigation

  function goTo(point) {
    const before = state.point;
    state.point = point.map((k, axis) => bounded(k, 0, data.shape[axis] - 1));
    state.hover = null;
    const across = new Set(planes().flatMap((plane) => plane.across));
    if (state.point.some((k, axis) => k !== before[axis] && across.has(axis))) paint();
    else {
      if (groupInFocus() !== emphasised) drawContours();
      arrange();
      showValues();
    }
    for (const label of $("sliders").children) label.update();
  }

  function slice(plane, by) {
    const [axis] = plane.across;
    if (axis === undefined) return false;
    const point = state.point.slice();
    point[axis] = bounded(point[axis] + by, 0, data.shape[axis] - 1);
    const moved = point[axis] !== state.point[axis];
    if (moved) goTo(point);
    return moved;
  }

  // The indices of the pixel in a column and row of a plane.
  function placeIn(plane, column, row) {
    const [width, height] = sizeOf(plane);
    const point = state.point.slice();
    const [c, r] = [bounded(column, 0, width - 1), bounded(row, 0, height - 1)];
    if (plane.columns >= 0) point[plane.columns] = plane.flipColumns ? width - 1 - c : c;
    if (plane.rows >= 0) point[plane.rows] = plane.flipRows ? height - 1 - r : r;
    return point;
  }

  function move(plane, columns, rows) {
    const [column, row] = frames.inPlane(plane, state.point);
    goTo(placeIn(plane, Math.floor(column) + columns, Math.floor(row) + rows));
    keepInSight(plane);
    announce();
  }

  // Scroll the cross-hair back into view.
  function keepInSight(plane) {
    const panel = panels.find((one) => one.plane === plane);
    const [x, y, w, h] = panel.window;
    const [column, row] = frames.inPlane(plane, state.point);
    if (column < x || row < y || column > x + w || row > y + h) {
      state.centre = state.point.slice();
      arrange();
    }
  }

  function zoom(factor, centre = state.point) {
    const least = Math.min(...planes().map((plane, k) => frames.least(plane, layout.shape, layout.widths[k])));
    if (factor === 0) Object.assign(state, { zoom: 1, centre: middle() });
    else Object.assign(state, { zoom: bounded(state.zoom * factor, least, 64), centre: centre.slice() });
    arrange();
  }

  // --- places of differences: the worst place of every region, worst region first, or all places of
  // the selected group

  const regions = dicePlot.groups.filter((group) => sides.some((side) => data[side].groups.includes(group)));
  const groupOfPlace = () => selection.chosen ?? regions[state.place] ?? null;
  const placeAt = () => (selection.chosen === null ? places(groupOfPlace())[0] : places(selection.chosen)[state.place]);
  const count = () => (selection.chosen === null ? Math.max(regions.length, 1) : places(selection.chosen).length);
  const atPlace = () => placeAt().every((k, axis) => k === state.point[axis]);

  function groupInFocus() {
    if (atPlace() || selection.chosen !== null) return groupOfPlace();
    const group = groupAt(pixelAt(state.point), similarity(pixelAt(state.point)));
    return group === null || group === data.background ? groupOfPlace() : group;
  }

  function goToPlace(number, scroll = false) {
    state.place = (number + count()) % count();
    if (state.zoom > 1) state.centre = placeAt().slice();
    goTo(placeAt());
    showPlace();
    announce();
    if (scroll) scrollToPanels();
  }

  function showPlace() {
    const total = count();
    const name = dicePlot.nameOf(groupOfPlace());
    const what = selection.chosen === null ? "region" : "place";
    let text = `${total} ${what}${total === 1 ? "" : "s"}`;
    if (atPlace()) text = `${selection.chosen === null ? "" : "place "}${state.place + 1} of ${total}`;
    if (selection.chosen !== null || atPlace()) text += `: ${name}`;
    $("place").textContent = $("place").title = text;
    for (const id of ["previous-place", "next-place"]) $(id).disabled = total === 1 && atPlace();
  }

  function scrollToPanels() {
    const { top, bottom } = box.getBoundingClientRect();
    const visible = Math.min(bottom, innerHeight) - Math.max(top, 0);
    if (visible >= 0.6 * Math.min(bottom - top, innerHeight)) return;
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
    $("viewer").scrollIntoView({ behavior, block: "start" });
  }

  // --- mouse

  function placeOf(event, panel, clamp = false) {
    const edge = panel.frame.getBoundingClientRect();
    const [x, y, w, h] = panel.window;
    const [width, height] = sizeOf(panel.plane);
    const column = Math.floor(x + ((event.clientX - edge.left) / edge.width) * w);
    const row = Math.floor(y + ((event.clientY - edge.top) / edge.height) * h);
    if (!clamp && (column < 0 || row < 0 || column >= width || row >= height)) return null;
    return placeIn(panel.plane, column, row);
  }

  function listenTo(panel) {
    const { frame, plane } = panel;
    let drag = null;
    let wheel = 0;
    frame.addEventListener("pointermove", (event) => {
      if (drag) {
        drag.moved += Math.abs(event.movementX) + Math.abs(event.movementY);
        if (drag.moved > 4 && state.zoom > 1) {
          const edge = frame.getBoundingClientRect();
          const shift = (axis, flip, by) => {
            if (axis >= 0) state.centre[axis] = bounded(state.centre[axis] + (flip ? by : -by), 0, data.shape[axis] - 1);
          };
          shift(plane.columns, plane.flipColumns, (event.movementX / edge.width) * panel.window[2]);
          shift(plane.rows, plane.flipRows, (event.movementY / edge.height) * panel.window[3]);
          arrange();
          return;
        }
        if (drag.moved > 4) goTo(placeOf(event, panel, true));
        return;
      }
      state.hover = event.pointerType === "mouse" ? placeOf(event, panel) : null;
      showValues();
    });
    frame.addEventListener("pointerleave", () => {
      state.hover = null;
      showValues();
    });
    frame.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      drag = { moved: 0 };
      if (event.pointerType === "mouse") frame.setPointerCapture(event.pointerId);
    });
    frame.addEventListener("pointerup", (event) => {
      const clicked = drag && drag.moved <= 4;
      drag = null;
      const place = clicked ? placeOf(event, panel) : null;
      if (!place) return;
      goTo(place);
      showPlace();
    });
    frame.addEventListener("pointercancel", () => { drag = null; });
    frame.addEventListener("dblclick", (event) => {
      const place = placeOf(event, panel);
      if (place) chooseAt(panel.content, place);
    });
    frame.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(event.deltaY < 0 ? 1.25 : 0.8, placeOf(event, panel) ?? state.point);
        return;
      }
      if (!plane.across.length) return;
      // A mouse wheel reports steps of about 100, and a touch pad reports steps of a few.
      wheel += event.deltaMode ? event.deltaY * 40 : event.deltaY;
      const by = Math.trunc(wheel / 40);
      if (!by) { event.preventDefault(); return; }
      wheel = 0;
      if (slice(plane, -Math.sign(by))) event.preventDefault();
      showPlace();
    }, { passive: false });
  }

  function chooseAt(content, point) {
    const side = content === "prediction" ? "prediction" : "reference";
    const pixel = pixelAt(point);
    const [largest] = regionsAt(side, pixel);
    if (similarity(pixel) >= 0 && largest && data[side].groups[largest[0]] >= 0) selection.toggle(data[side].groups[largest[0]]);
  }

  // --- keyboard

  function onKey(event) {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const panel = panels.find((one) => one.canvas === event.target);
    if (!panel && event.target !== document.body && !event.target.closest("#viewer")) return;
    const plane = panel?.plane ?? planes()[0];
    const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    if (x || y) {
      if (panel && (event.shiftKey || axes < 3)) move(plane, x, y);
      else if (!event.shiftKey && axes > 2 && (panel || x)) { slice(plane, x - y); announce(); }
      else return;
      showPlace();
    } else if (panel && (event.key === "PageUp" || event.key === "PageDown")) {
      slice(plane, event.key === "PageUp" ? 10 : -10);
      announce();
    } else if (panel && event.key === "Enter") chooseAt(panel.content, state.point);
    else if (event.key === "n" || event.key === "p") goToPlace(state.place + (event.key === "n" ? 1 : -1));
    else if ("+=".includes(event.key)) zoom(1.5);
    else if ("-0".includes(event.key)) zoom(event.key === "0" ? 0 : 1 / 1.5);
    else return;
    event.preventDefault();
  }

  // --- controls

  function radios(box, name, entries, checked, act) {
    for (const [value, text] of entries) {
      const label = make("label");
      const input = make("input");
      Object.assign(input, { type: "radio", name, value, checked: value === checked });
      input.addEventListener("change", () => act(value));
      label.append(input, make("span", "", text));
      box.append(label);
    }
  }

  function buildControls() {
    const several = data.planes.length > 1;
    $("planes").hidden = !several;
    if (several) {
      const entries = data.planes.map((plane) => [plane.name, plane.name]);
      if (axes === 3) entries.push(["all", "all three"]);
      radios($("planes"), "plane", entries, data.planes[state.plane].name, (value) => {
        state.all = value === "all";
        if (!state.all) state.plane = data.planes.findIndex((plane) => plane.name === value);
        Object.assign(state, { zoom: 1, centre: middle() });
        build();
      });
    }
    radios($("contents"), "content", CONTENTS.map((content) => [content, NAMES[content]]), state.content, (value) => {
      state.content = value;
      build();
    });
    for (const input of document.querySelectorAll("input[name=mode]")) input.addEventListener("change", () => { state.mode = input.value; paint(); });
    if (data.images.length) buildImageControls();
  }

  function buildImageControls() {
    const choice = $("image");
    data.images.forEach((image, k) => {
      const option = make("option", "", image.name);
      option.value = k;
      choice.append(option);
    });
    choice.closest("label").hidden = data.images.length < 2;
    choice.addEventListener("change", () => {
      state.image = Number(choice.value);
      state.window = data.images[state.image].window.slice();
      showImageControls();
      paint();
    });
    $("opacity").addEventListener("input", () => { state.opacity = Number($("opacity").value) / 100; showImageControls(); paint(); });
    for (const id of ["level", "width"]) {
      $(id).addEventListener("input", () => {
        const [level, width] = [Number($("level").value), Math.max(Number($("width").value), 1e-6)];
        state.window = [level - width / 2, level + width / 2];
        showImageControls();
        paint();
      });
    }
    $("levels")?.addEventListener("change", () => {
      const levels = $("levels").value.split(/[\s,;]+/).map(Number).filter((level) => level > 0 && level < 1);
      if (levels.length) state.levels = [...new Set(levels)].sort();
      showImageControls();
      paint();
    });
    showImageControls();
  }

  function showImageControls() {
    const image = data.images[state.image];
    if (!image) return;
    const range = image.high - image.low;
    const [low, high] = state.window;
    const short = (value) => String(Number(value.toPrecision(4)));
    $("image").value = state.image;
    $("opacity").value = Math.round(state.opacity * 100);
    $("opacity-value").textContent = `${Math.round(state.opacity * 100)} %`;
    Object.assign($("level"), { min: image.low, max: image.high, step: range / 500 });
    Object.assign($("width"), { min: range / 500, max: range * 1.5, step: range / 500 });
    $("level").value = (low + high) / 2;
    $("width").value = high - low;
    $("level-value").textContent = short((low + high) / 2);
    $("width-value").textContent = short(high - low);
    if ($("levels")) $("levels").value = state.levels.join(", ");
  }

  function slider(axis) {
    const label = make("label");
    const input = make("input");
    const output = make("output");
    const plane = data.planes.find((one) => one.across.length === 1 && one.across[0] === axis);
    label.update = () => {
      input.value = state.point[axis];
      const place = millimetres(state.point);
      const towards = data.towards?.[axis];
      const far = place && towards >= 0 ? ` · ${signed(place[towards])} mm` : "";
      output.textContent = `${state.point[axis] * data.step} (0–${data.size[axis] - 1})${far}`;
      input.setAttribute("aria-valuetext", output.textContent);
    };
    Object.assign(input, { type: "range", min: 0, max: data.shape[axis] - 1, step: 1 });
    input.dataset.axis = axis;
    input.addEventListener("input", () => {
      const point = state.point.slice();
      point[axis] = Number(input.value);
      goTo(point);
      showPlace();
    });
    label.append(make("span", "", state.all && plane ? plane.name : planes()[0].across.length > 1 ? `axis ${axis}` : "slice"), input, output);
    label.update();
    return label;
  }

  // --- link to the current view

  function viewLink() {
    const view = new URLSearchParams();
    view.set("at", index(state.point).join("."));
    if (data.planes.length > 1) view.set("plane", state.all ? "all" : data.planes[state.plane].name);
    if (state.all) view.set("show", state.content);
    if (state.mode !== "probabilities") view.set("mode", state.mode);
    if (state.zoom !== 1) {
      view.set("zoom", state.zoom.toFixed(3));
      view.set("centre", state.centre.map((k) => k.toFixed(2)).join("_"));
    }
    if (selection.chosen !== null) view.set("group", selection.chosen);
    if (state.image >= 0) {
      view.set("image", state.image);
      view.set("opacity", state.opacity);
      view.set("window", state.window.map((edge) => Number(edge.toPrecision(6))).join("_"));
      if (!data.crisp) view.set("levels", state.levels.join("_"));
    }
    return `#${view}`;
  }

  let pending = 0;
  let last = "";
  function remember() {
    clearTimeout(pending);
    pending = setTimeout(() => {
      last = viewLink();
      try { history.replaceState(null, "", last); } catch { /* this page may not change its address */ }
    }, 250);
  }

  // Show the view of a link. Invalid parts are ignored.
  function restore() {
    const view = new URLSearchParams(location.hash.slice(1));
    const numbers = (name, split) => (view.get(name) ?? "").split(split).map(Number);
    const at = numbers("at", ".");
    if (!view.has("at") || at.length !== axes || !at.every(Number.isFinite)) return false;
    state.point = at.map((k, axis) => bounded(Math.round(k / data.step), 0, data.shape[axis] - 1));
    const plane = data.planes.findIndex((one) => one.name === view.get("plane"));
    state.all = axes === 3 && view.get("plane") === "all";
    if (plane >= 0) state.plane = plane;
    if (CONTENTS.includes(view.get("show"))) state.content = view.get("show");
    state.mode = document.querySelector(`input[name=mode][value="${CSS.escape(view.get("mode") ?? "")}"]`)?.value ?? "probabilities";
    const zoomed = Number(view.get("zoom"));
    const centre = numbers("centre", "_");
    const framed = zoomed > 0 && centre.length === axes && centre.every(Number.isFinite);
    Object.assign(state, framed ? { zoom: bounded(zoomed, 0.01, 64), centre } : { zoom: 1, centre: middle() });
    if (state.image >= 0) {
      state.image = bounded(Math.round(Number(view.get("image")) || 0), 0, data.images.length - 1);
      state.window = data.images[state.image].window.slice();
      const edges = numbers("window", "_");
      if (edges.length === 2 && edges.every(Number.isFinite) && edges[0] < edges[1]) state.window = edges;
      if (view.has("opacity")) state.opacity = bounded(Number(view.get("opacity")) || 0, 0, 1);
      const levels = numbers("levels", "_").filter((level) => level > 0 && level < 1);
      if (levels.length) state.levels = levels;
    }
    const group = view.has("group") ? Number(view.get("group")) : null;
    const shown = group === null || sides.some((side) => data[side].groups.includes(group));
    selection.choose(shown ? group : null);
    for (const [name, value] of [["plane", state.all ? "all" : data.planes[state.plane].name], ["content", state.content], ["mode", state.mode]]) {
      for (const input of document.querySelectorAll(`input[name=${name}]`)) input.checked = input.value === value;
    }
    showImageControls();
    return true;
  }

  // --- start

  function repaint(dark) {
    if (state.dark === dark) return;
    state.dark = dark;
    paint();
  }

  $("zoom-in").addEventListener("click", () => zoom(1.5));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.5));
  $("zoom-reset").addEventListener("click", () => zoom(0));
  $("previous-place").addEventListener("click", () => goToPlace(state.place - 1));
  $("next-place").addEventListener("click", () => goToPlace(state.place + 1));
  $("copy-link").addEventListener("click", () => saving.copy(location.href.split("#")[0] + viewLink(), "Link"));
  document.addEventListener("keydown", onKey);
  for (const button of document.querySelectorAll("[data-place]")) {
    button.addEventListener("click", () => {
      const place = button.dataset.place.split(".").map(Number);
      if (state.zoom > 1) state.centre = place.slice();
      goTo(place);
      showPlace();
      announce();
      scrollToPanels();
    });
  }
  night.addEventListener("change", () => repaint(night.matches));
  window.addEventListener("beforeprint", () => repaint(false)); // printing uses the light theme
  window.addEventListener("afterprint", () => repaint(night.matches));
  window.addEventListener("hashchange", () => {
    if (location.hash !== last && restore()) { build(); showPlace(); }
  });

  buildControls();
  state.point = placeAt().slice();
  state.centre = middle();
  restore();
  build();
  showPlace();
  selection.listen((chosen, go) => {
    state.place = 0;
    paint();
    if (go) goToPlace(0, true);
    else showPlace();
  });
  $("viewer").dataset.ready = "yes";
})();
