"use strict";
// Locations where a group, or the whole image, differs most. Blocks of the image are sorted by the
// lost similarity in and around each block, and blocks close to a chosen block are excluded. The
// location in a block is the pixel with the largest weight (see `weigher`); in a tie, the pixel that
// is closest to the weighted centre of the block.
function placesOf({ data, strides, similarity, share }) {
  const BLOCKS = 24; // along an axis
  const MOST = 20;
  const known = new Map();
  const axes = data.shape.length;
  const sizes = data.shape.map((n) => Math.ceil(n / BLOCKS));
  const counts = data.shape.map((n, axis) => Math.ceil(n / sizes[axis]));
  const steps = counts.map((_, axis) => counts.slice(axis + 1).reduce((a, b) => a * b, 1));
  const { reference, prediction } = data;
  const quick = data.crisp && !data.f;

  // The weight of a pixel: the probability of the group (1 without a group). If `lost` is true, the
  // weight is multiplied by the lost similarity.
  function weigher(group, lost) {
    const presence = (pixel) => Math.max(share("reference", group, pixel), share("prediction", group, pixel));
    if (quick && lost) {
      const [one, two, first, second] = [reference.codes, prediction.codes, reference.group, prediction.group];
      return (pixel) => {
        const [a, b] = [first[one[pixel]], second[two[pixel]]];
        return a !== b && one[pixel] && (group === null || a === group || b === group) ? 1 : 0;
      };
    }
    return (pixel) => {
      const value = similarity(pixel);
      if (value < 0) return 0;
      return (lost ? 1 - value : 1) * (group === null ? 1 : presence(pixel));
    };
  }

  // The weight of every block, line by line of pixels.
  function weigh(group, lost) {
    const sums = new Float64Array(counts.reduce((a, b) => a * b, 1));
    const last = axes - 1;
    const inner = axes ? data.shape[last] : 1;
    const outer = data.shape.slice(0, -1).reduce((a, b) => a * b, 1);
    const blocks = Int32Array.from({ length: inner }, (_, k) => (axes ? Math.floor(k / sizes[last]) : 0));
    const point = data.shape.map(() => 0);
    const weight = weigher(group, lost);
    const [one, two, first, second] = [reference.codes, prediction.codes, reference.group, prediction.group];
    for (let line = 0, pixel = 0; line < outer; line++) {
      let block = 0;
      for (let axis = 0; axis < last; axis++) block += Math.floor(point[axis] / sizes[axis]) * steps[axis];
      if (quick && lost) {
        // Label maps may have millions of pixels, most of which agree. Skip function calls for them.
        for (let k = 0; k < inner; k++, pixel++) if (first[one[pixel]] !== second[two[pixel]]) sums[block + blocks[k]] += weight(pixel);
      } else {
        for (let k = 0; k < inner; k++, pixel++) sums[block + blocks[k]] += weight(pixel);
      }
      for (let axis = last - 1; axis >= 0 && ++point[axis] === data.shape[axis]; axis--) point[axis] = 0;
    }
    return sums;
  }

  const blockOf = (block) => steps.map((step, axis) => Math.floor(block / step) % counts[axis]);

  // The blocks within a distance of a block along every axis.
  function around(block, reach) {
    let offsets = [0];
    blockOf(block).forEach((k, axis) => {
      const near = [];
      for (let at = Math.max(0, k - reach); at <= Math.min(counts[axis] - 1, k + reach); at++) for (const base of offsets) near.push(base + at * steps[axis]);
      offsets = near;
    });
    return offsets;
  }

  function lowest(block, weight) {
    let boxes = [{ pixel: 0, place: [] }];
    blockOf(block).forEach((k, axis) => {
      const more = [];
      for (let at = k * sizes[axis]; at < Math.min(data.shape[axis], (k + 1) * sizes[axis]); at++) for (const box of boxes) more.push({ pixel: box.pixel + at * strides[axis], place: [...box.place, at] });
      boxes = more;
    });
    const counted = boxes.map((box) => ({ ...box, weight: weight(box.pixel) })).filter((box) => box.weight > 0);
    const sum = counted.reduce((all, box) => all + box.weight, 0);
    const centre = data.shape.map((_, axis) => counted.reduce((all, box) => all + box.weight * box.place[axis], 0) / sum);
    const far = (box) => box.place.reduce((all, k, axis) => all + (k - centre[axis]) ** 2, 0);
    const most = Math.max(...counted.map((box) => box.weight));
    return counted.filter((box) => box.weight >= most - 1e-9).reduce((best, box) => (far(box) < far(best) ? box : best)).place;
  }

  function find(group, lost) {
    const sums = weigh(group, lost);
    const nearby = sums.map((_, block) => around(block, 1).reduce((all, one) => all + sums[one], 0));
    const order = [...sums.keys()].filter((block) => sums[block] > 0).sort((a, b) => nearby[b] - nearby[a] || sums[b] - sums[a] || a - b);
    const taken = new Set();
    const places = [];
    for (const block of order) {
      if (taken.has(block)) continue;
      const near = around(block, 1);
      const best = near.reduce((one, two) => (sums[two] > sums[one] ? two : one), block);
      for (const one of around(block, 2)) taken.add(one);
      if (places.length && taken.has(best) && places.some((place) => place.block === best)) continue;
      places.push({ block: best, at: lowest(best, weigher(group, lost)) });
      if (places.length === MOST) break;
    }
    return places.map((place) => place.at);
  }

  const middle = () => data.frame.map(([first, last]) => Math.floor((first + last) / 2));

  // The locations of a group, worst first. If the group has no differences, a location in the block
  // that contains most of the group.
  return (group) => {
    if (!known.has(group)) {
      let places = find(group, true);
      if (!places.length) places = group === null ? [middle()] : find(group, false).slice(0, 1);
      known.set(group, places.length ? places : [middle()]);
    }
    return known.get(group);
  };
}
