"use strict";
// The part of a plane that a frame shows, in pixels of the plane. A frame has an aspect ratio but
// no size. Positions are fractions of the frame, so that print and screen look the same.
function framesOf({ data }, state, { sizeOf }) {
  const bounded = (value, low, high) => Math.min(high, Math.max(low, value));

  // Height of a pixel divided by its width. A single line of pixels is drawn as a band.
  function aspectOf(plane) {
    const [width, height] = sizeOf(plane);
    return plane.rows < 0 ? Math.max(1, (0.2 * width) / height) : plane.aspect;
  }

  // First and last displayed pixel along an axis of the plane.
  function span(axis, flip) {
    if (axis < 0) return [0, 0];
    const [first, last] = data.frame[axis];
    return flip ? [data.shape[axis] - 1 - last, data.shape[axis] - 1 - first] : [first, last];
  }

  // Width and height of the foreground, in pixel widths.
  function extent(plane) {
    const [left, right] = span(plane.columns, plane.flipColumns);
    const [top, bottom] = span(plane.rows, plane.flipRows);
    return [right - left + 1, (bottom - top + 1) * aspectOf(plane)];
  }

  // The aspect ratio of all frames, and the number of pixel widths that each frame shows without zoom.
  function shared(planes) {
    // All slices of a volume have the same scale, regardless of their pixel size.
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

  const from = (width, extent, centre) => (width >= extent ? (extent - width) / 2 : bounded(centre - width / 2, 0, extent - width));

  // The visible part of a plane: left, top, width and height in pixels.
  function windowOf(plane, shape, width) {
    const [columns, rows] = sizeOf(plane);
    const [w, h] = [width / state.zoom, width / state.zoom / shape / aspectOf(plane)];
    const [x, y] = inPlane(plane, state.centre);
    return [from(w, columns, x), from(h, rows, y), w, h];
  }

  // The smallest zoom, which shows the whole plane.
  function least(plane, shape, width) {
    const [columns, rows] = sizeOf(plane);
    return Math.min(1, width / Math.max(columns, rows * aspectOf(plane) * shape));
  }

  return { aspectOf, shared, inPlane, windowOf, least };
}
