"use strict";
// What part of a plane a frame shows, in pixels of the plane. A frame has a shape but no size, and
// everything in it is placed by shares of it, so that it prints as it is seen.
function framesOf({ data }, state, { sizeOf }) {
  const bounded = (value, low, high) => Math.min(high, Math.max(low, value));

  // Height of a pixel by its width; a line of pixels is drawn as a band.
  function aspectOf(plane) {
    const [width, height] = sizeOf(plane);
    return plane.rows < 0 ? Math.max(1, (0.2 * width) / height) : plane.aspect;
  }

  // First and last pixel along an axis of the plane as it is drawn.
  function span(axis, flip) {
    if (axis < 0) return [0, 0];
    const [first, last] = data.frame[axis];
    return flip ? [data.shape[axis] - 1 - last, data.shape[axis] - 1 - first] : [first, last];
  }

  // Width and height of what is not background, in widths of a pixel.
  function extent(plane) {
    const [left, right] = span(plane.columns, plane.flipColumns);
    const [top, bottom] = span(plane.rows, plane.flipRows);
    return [right - left + 1, (bottom - top + 1) * aspectOf(plane)];
  }

  // The shape of all frames, width by height, and how many widths of a pixel each shows unzoomed.
  function shared(planes) {
    // Slices of one volume are drawn to one scale, whatever the size of their pixels.
    const units = planes.map((plane) => (planes.length > 1 && data.spacing && plane.columns >= 0 ? data.spacing[plane.columns] : 1));
    const extents = planes.map((plane, k) => extent(plane).map((size) => size * units[k]));
    const wide = Math.max(...extents.map(([width]) => width));
    const high = Math.max(...extents.map(([, height]) => height));
    const shape = bounded(wide / high, 0.62, 6);
    return { shape, widths: units.map((unit) => Math.max(wide, high * shape) / unit) };
  }

  const inPlane = (plane, place) => {
    const along = (axis, flip) => (axis < 0 ? 0.5 : (flip ? data.shape[axis] - 1 - place[axis] : place[axis]) + 0.5);
    return [along(plane.columns, plane.flipColumns), along(plane.rows, plane.flipRows)];
  };

  const from = (room, extent, centre) => (room >= extent ? (extent - room) / 2 : bounded(centre - room / 2, 0, extent - room));

  // The part of a plane that is seen: left, top, width and height in its pixels.
  function windowOf(plane, shape, width) {
    const [columns, rows] = sizeOf(plane);
    const [w, h] = [width / state.zoom, width / state.zoom / shape / aspectOf(plane)];
    const [x, y] = inPlane(plane, state.centre);
    return [from(w, columns, x), from(h, rows, y), w, h];
  }

  // How far out one can zoom: until all of the plane is seen.
  function least(plane, shape, width) {
    const [columns, rows] = sizeOf(plane);
    return Math.min(1, width / Math.max(columns, rows * aspectOf(plane) * shape));
  }

  return { aspectOf, shared, inPlane, windowOf, least };
}
