"use strict";
// The images: three panels of one plane, which share the slice, the zoom and the point.
(async () => {
  const loaded = await pixels.catch(() => null);
  if (loaded === null) {
    document.querySelector(".panels").textContent = "This browser is too old to show the images.";
    return;
  }
  const { data, sides, scale, strides, f, outside, number, regionsAt } = loaded;
  const axes = data.shape.length;
  const panels = [...document.querySelectorAll(".panel")].map((panel) => ({
    side: panel.dataset.side,
    frame: panel.querySelector(".frame"),
    canvas: panel.querySelector("canvas"),
    point: panel.querySelector(".point"),
    values: panel.querySelector(".values"),
    name: panel.querySelector("canvas").getAttribute("aria-label"),
  }));
  const state = { mode: "probabilities", plane: data.planes[0], here: data.here.slice(), zoom: 1, x: 0.5, y: 0.5 };
  const painter = painterOf(loaded, state);
  const { size } = painter;
  const step = (axis) => (axis < 0 ? 1 : data.step[axis]);

  // --- the point

  function pointInPlane() {
    const { plane, here } = state;
    const [width, height] = size();
    const c = plane.columns < 0 ? 0 : here[plane.columns];
    const r = plane.rows < 0 ? 0 : here[plane.rows];
    return [plane.flipColumns ? width - 1 - c : c, plane.flipRows ? height - 1 - r : r];
  }

  function herePixel() {
    return state.here.reduce((sum, k, axis) => sum + k * strides[axis], 0);
  }

  const place = (axis) => data.start[axis] + state.here[axis] * data.step[axis];

  // --- panels

  function paint() {
    const [width, height] = size();
    for (const panel of panels) {
      panel.canvas.width = width;
      panel.canvas.height = height;
      // Painted pixel by pixel, so it had better stay out of the graphics card.
      const context = panel.canvas.getContext("2d", { willReadFrequently: true });
      const image = context.createImageData(width, height);
      painter.paint(panel.side, image.data);
      context.putImageData(image, 0, 0);
    }
    arrange();
    tell();
  }

  // Put canvas and point in their frames: fitted, then zoomed about a centre that is shared.
  function arrange() {
    const [width, height] = size();
    const { plane } = state;
    let aspect = (plane.aspect * step(plane.rows)) / step(plane.columns);
    if (plane.rows < 0) aspect = Math.max(1, (0.2 * width) / height);
    const shape = Math.min(1.35, Math.max(0.12, (height * aspect) / width));
    const [column, row] = pointInPlane();
    let centre = null;
    for (const { frame, canvas, point } of panels) {
      frame.style.height = `${frame.offsetWidth * shape}px`;
      frame.classList.toggle("zoomed", state.zoom > 1);
      const [w, h] = [frame.clientWidth, frame.clientHeight];
      const fit = Math.min(w / width, h / (height * aspect)) * state.zoom;
      const [sx, sy] = [fit, fit * aspect];
      const left = bounded(w / 2 - state.x * width * sx, w, width * sx);
      const top = bounded(h / 2 - state.y * height * sy, h, height * sy);
      centre ??= [(w / 2 - left) / (width * sx), (h / 2 - top) / (height * sy)];
      canvas.style.transform = `translate(${left}px, ${top}px) scale(${sx}, ${sy})`;
      point.style.transform = `translate(${left + column * sx}px, ${top + row * sy}px)`;
      point.style.width = `${Math.max(sx, 3)}px`;
      point.style.height = `${Math.max(sy, 3)}px`;
    }
    // At an edge the centre is where the frame shows it, so that a drag away from it moves at once.
    [state.x, state.y] = centre;
    document.getElementById("zoom-reset").textContent = `${state.zoom}×`;
  }

  // No gap at an edge where the image is larger than the frame; else in the middle.
  function bounded(start, room, extent) {
    if (extent <= room) return (room - extent) / 2;
    return Math.min(0, Math.max(room - extent, start));
  }

  // --- the numbers under the panels

  function item(text, className) {
    const element = document.createElement("span");
    element.textContent = text;
    element.className = className;
    return element;
  }

  function listOf(side, pixel) {
    const list = document.createElement("ol");
    const entry = data[side];
    const found = f[pixel] === outside ? [] : regionsAt(side, pixel);
    for (const [region, value] of found) {
      const line = document.createElement("li");
      const chip = item("", "chip");
      chip.style.background = entry.colours[region];
      const level = item("", "level");
      const bar = document.createElement("i");
      bar.style.width = `${(100 * value) / scale}%`;
      level.append(bar);
      const name = item(entry.names[region], "name");
      name.title = entry.names[region];
      line.append(chip, name, level, item(entry.values ? number(value) : "1", "amount"));
      list.append(line);
    }
    list.style.minHeight = `${1.5 * Math.min(entry.kept, entry.names.length)}rem`;
    return list;
  }

  function coordinates() {
    return `(${state.here.map((_, axis) => place(axis)).join(", ")})`;
  }

  function tell() {
    const pixel = herePixel();
    const inside = f[pixel] !== outside;
    for (const panel of panels) {
      if (panel.side === "f") {
        const value = item(inside ? number(f[pixel]) : "not compared", "big");
        value.id = "similarity";
        const where = item(` at pixel ${coordinates()}`, "where");
        panel.values.replaceChildren(value, where);
      } else {
        panel.values.replaceChildren(listOf(panel.side, pixel));
      }
    }
  }

  function speak() {
    const pixel = herePixel();
    const told = sides.map((side) => `${side}: ${regionsAt(side, pixel).map(([region, value]) => `${data[side].names[region]} ${number(value)}`).join(", ")}`);
    const text = f[pixel] === outside ? "not compared" : `f ${number(f[pixel])}; ${told.join("; ")}`;
    document.getElementById("spoken").textContent = `Pixel ${coordinates()}: ${text}`;
  }

  // --- controls

  function buildPlanes() {
    const box = document.getElementById("planes");
    box.hidden = data.planes.length < 2;
    for (const plane of data.planes) {
      const label = document.createElement("label");
      const input = document.createElement("input");
      Object.assign(input, { type: "radio", name: "plane", checked: plane === state.plane, value: plane.name });
      input.addEventListener("change", () => show(plane));
      label.append(input, item(plane.name, ""));
      box.append(label);
    }
  }

  function show(plane) {
    Object.assign(state, { plane, zoom: 1, x: 0.5, y: 0.5 });
    const box = document.getElementById("sliders");
    box.replaceChildren(...plane.across.map(slider));
    for (const { frame, canvas, name } of panels) {
      for (const old of frame.querySelectorAll(".edge")) old.remove();
      plane.edges.forEach((letter, k) => {
        if (!letter) return;
        const edge = item(letter, "edge");
        const far = "calc(50% - .5rem)";
        Object.assign(edge.style, [{ top: "2px", left: far }, { right: "2px", top: far }, { bottom: "2px", left: far }, { left: "2px", top: far }][k]);
        frame.append(edge);
      });
      canvas.setAttribute("aria-label", plane.name === "all" ? name : `${name}, ${plane.name}`);
    }
    paint();
  }

  function slider(axis) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const output = document.createElement("output");
    const update = () => {
      input.value = state.here[axis];
      output.textContent = `${place(axis)} (0–${data.size[axis] - 1})`;
      input.setAttribute("aria-valuetext", output.textContent);
    };
    Object.assign(input, { type: "range", min: 0, max: data.shape[axis] - 1, step: 1 });
    input.dataset.axis = axis;
    input.addEventListener("input", () => {
      state.here[axis] = Number(input.value);
      update();
      paint();
    });
    label.append(item(state.plane.across.length > 1 ? `Axis ${axis}` : "Slice", ""), input, output);
    label.update = update;
    update();
    return label;
  }

  function slice(by) {
    const [axis] = state.plane.across;
    if (axis === undefined) return;
    state.here[axis] = Math.min(data.shape[axis] - 1, Math.max(0, state.here[axis] + by));
    for (const label of document.getElementById("sliders").children) label.update();
    paint();
    speak();
  }

  function move(columns, rows) {
    const [width, height] = size();
    const [column, row] = pointInPlane();
    point(Math.min(width - 1, Math.max(0, column + columns)), Math.min(height - 1, Math.max(0, row + rows)));
    speak();
  }

  function point(column, row) {
    const { plane, here } = state;
    const [width, height] = size();
    if (plane.columns >= 0) here[plane.columns] = plane.flipColumns ? width - 1 - column : column;
    if (plane.rows >= 0) here[plane.rows] = plane.flipRows ? height - 1 - row : row;
    arrange();
    tell();
  }

  function zoom(factor, x = null, y = null) {
    const [width, height] = size();
    const [column, row] = pointInPlane();
    state.zoom = factor === 0 ? 1 : Math.min(32, Math.max(1, state.zoom * factor));
    state.x = x ?? (column + 0.5) / width;
    state.y = y ?? (row + 0.5) / height;
    arrange();
  }

  function placeOf(event, canvas) {
    const box = canvas.getBoundingClientRect();
    const [width, height] = size();
    const column = Math.floor(((event.clientX - box.left) / box.width) * width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * height);
    return column >= 0 && row >= 0 && column < width && row < height ? [column, row] : null;
  }

  function listenTo(panel) {
    let drag = null;
    panel.frame.addEventListener("pointermove", (event) => {
      const box = panel.canvas.getBoundingClientRect();
      if (drag && state.zoom > 1) {
        drag.moved += Math.abs(event.movementX) + Math.abs(event.movementY);
        if (drag.moved > 4) {
          state.x = Math.min(1, Math.max(0, state.x - event.movementX / box.width));
          state.y = Math.min(1, Math.max(0, state.y - event.movementY / box.height));
          arrange();
          return;
        }
      }
      const found = placeOf(event, panel.canvas);
      if (found) point(...found);
    });
    panel.frame.addEventListener("pointerdown", (event) => {
      drag = { moved: 0 };
      if (state.zoom > 1) panel.frame.setPointerCapture(event.pointerId);
    });
    panel.frame.addEventListener("pointerup", (event) => {
      const moved = drag ? drag.moved : 0;
      drag = null;
      const found = placeOf(event, panel.canvas);
      if (!found || moved > 4) return;
      point(...found);
      const side = panel.side === "prediction" ? "prediction" : "reference";
      const [largest] = regionsAt(side, herePixel());
      if (f[herePixel()] !== outside && largest && data[side].groups[largest[0]] >= 0) selection.choose(data[side].groups[largest[0]]);
    });
    panel.frame.addEventListener("pointercancel", () => { drag = null; });
    panel.frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 2 : 0.5);
    }, { passive: false });
  }

  function onKey(event) {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const panel = event.target.matches("canvas");
    if (!panel && event.target !== document.body && !event.target.closest("#viewer")) return;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const [x, y] = arrows[event.key] ?? [0, 0];
    if (x || y) {
      if (panel && (event.shiftKey || axes < 3)) move(x, y);
      else if (!event.shiftKey && axes > 2 && (panel || x)) slice(x - y);
      else return;
    } else if (panel && (event.key === "PageUp" || event.key === "PageDown")) {
      slice(event.key === "PageUp" ? 10 : -10);
    } else if (panel && event.key === "Enter") {
      const [largest] = regionsAt("reference", herePixel());
      if (largest) selection.choose(data.reference.groups[largest[0]]);
    } else if ("+=".includes(event.key)) {
      zoom(2);
    } else if ("-0".includes(event.key)) {
      zoom(event.key === "0" ? 0 : 0.5);
    } else {
      return;
    }
    event.preventDefault();
  }

  for (const input of document.querySelectorAll("input[name=mode]")) {
    input.addEventListener("change", () => {
      state.mode = input.value;
      paint();
    });
  }
  document.getElementById("zoom-in").addEventListener("click", () => zoom(2));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(0.5));
  document.getElementById("zoom-reset").addEventListener("click", () => zoom(0));
  document.addEventListener("keydown", onKey);
  window.addEventListener("resize", arrange);
  window.addEventListener("beforeprint", arrange);
  panels.forEach(listenTo);
  selection.listen(paint);
  buildPlanes();
  show(state.plane);
  document.getElementById("viewer").dataset.ready = "yes";
})();
