"use strict";
// The page of an evaluation: one measure at a time, one dot per case, and the table of cases.
(() => {
  const data = JSON.parse(document.getElementById("records").textContent);
  const [CASE, METHOD, FIRST] = [0, 1, 2];
  const PAGE = FIRST + data.measures.length;
  const STEP = 200; // rows added at a time
  const MOST = 1500; // dots per method
  const collator = new Intl.Collator(undefined, { numeric: true });
  const state = { measure: data.measures[0], column: data.measures[0], falling: data.descending[0], shown: STEP, text: "", method: "" };
  const column = (measure) => FIRST + data.measures.indexOf(measure);
  const known = (value) => typeof value === "number"; // null is undefined, and "∞" is infinite

  // --- dots

  function svg(tag, attributes, text = null) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== null) element.textContent = text;
    return element;
  }

  // Overlapping dots are stacked alternately above and below the line.
  function stacked(values, width, low, high, radius) {
    const rows = new Map();
    const placed = values.map((value) => {
      const x = ((value - low) / (high - low)) * width;
      const bin = Math.round(x / (2 * radius));
      const count = rows.get(bin) ?? 0;
      rows.set(bin, count + 1);
      return [x, (count % 2 ? -1 : 1) * Math.ceil(count / 2)];
    });
    return [placed, rows];
  }

  // At most eight steps of 1, 2 or 5 times a power of ten.
  function roundTicks(low, high) {
    const unit = 10 ** Math.floor(Math.log10((high - low) / 8));
    const step = unit * ([1, 2, 5].find((one) => (high - low) / (one * unit) <= 8) ?? 10);
    const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
    return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(6)));
  }

  function drawDots(box) {
    const measure = box.dataset.measure;
    const at = column(measure);
    const values = data.records.map((record) => record[at]).filter(known);
    if (!values.length) return;
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const low = most > 1 ? Math.min(0, least) : Math.min(0.9, Math.floor(least * 10) / 10);
    const high = most > 1 ? most : 1;
    const [left, width, height] = [10, Math.max(200, box.clientWidth - 20), 62];
    const total = height * data.methods.length + 24;
    // The view box scales the chart to the paper size.
    const picture = svg("svg", { width: "100%", viewBox: `0 0 ${width + 2 * left} ${total}`, role: "img", "aria-label": `One dot per case, by method. The table of cases lists the numbers.` });
    const across = (value) => left + (Math.min(value - low, high - low) / (high - low)) * width;
    const bottom = total - 10;
    for (const value of roundTicks(low, high)) {
      const x = across(value);
      const anchor = x < left + 12 ? "start" : x > left + width - 12 ? "end" : "middle";
      picture.append(svg("line", { x1: x, x2: x, y1: bottom - 14, y2: bottom - 10, class: "mark" }));
      picture.append(svg("text", { x, y: bottom, "text-anchor": anchor, class: "tick" }, String(value)));
    }
    const chance = data.chance[measure];
    if (known(chance ?? null)) {
      const inside = chance >= low;
      const x = inside ? across(chance) : left;
      if (inside) picture.append(svg("line", { x1: x, x2: x, y1: 18, y2: bottom - 14, class: "chance" }));
      const words = inside ? `chance level ${decimal(chance)}` : `◂ chance level ${decimal(chance)}`;
      picture.append(svg("text", { x: x + (inside ? 3 : 0), y: bottom - 18, class: "count" }, words));
    }
    data.order[measure].forEach((method, place) => {
      const name = data.methods[method];
      const records = data.records.filter((record) => record[METHOD] === method && known(record[at])).sort((a, b) => a[at] - b[at]);
      const every = Math.ceil(records.length / MOST);
      const some = records.filter((_, k) => k % every === 0);
      const radius = some.length > 300 ? 2 : 3.5;
      const middle = height * place + 38;
      picture.append(svg("text", { x: left, y: height * place + 14, class: "name" }, every > 1 ? `${name} (1 in ${every} cases)` : name));
      picture.append(svg("line", { x1: left, x2: left + width, y1: middle, y2: middle, class: "rail" }));
      const [mean, from, to] = data.means[measure][method].map((value) => (known(value) ? across(value) : null));
      if (known(from) && known(to)) picture.append(svg("line", { x1: from, x2: to, y1: middle, y2: middle, class: "interval" }));
      const [placed, rows] = stacked(some.map((record) => record[at]), width, low, high, radius);
      const tallest = Math.max(1, ...placed.map(([, level]) => Math.abs(level)));
      const gap = Math.min(2 * radius + 0.5, 18 / tallest);
      placed.forEach(([x, level], k) => {
        const record = some[k];
        const dot = svg("circle", { cx: left + x, cy: middle + level * gap, r: radius, fill: data.colours[method], "data-case": record[CASE], "data-page": record[PAGE] || data.together[record[CASE]] || "" });
        dot.append(svg("title", {}, `${data.cases[record[CASE]]}: ${decimal(record[at])}`));
        picture.append(dot);
      });
      // Overlapping dots are labelled with their number.
      for (const [bin, count] of rows) {
        if (gap < 2 * radius && count * gap > 18) picture.append(svg("text", { x: Math.min(left + bin * 2 * radius, left + width), y: middle - 22, "text-anchor": bin * 2 * radius > width - 12 ? "end" : "middle", class: "count" }, `${count * every}×`));
      }
      if (known(mean)) picture.append(svg("line", { x1: mean, x2: mean, y1: middle - 14, y2: middle + 14, class: "mean" }));
    });
    box.replaceChildren(picture);
  }

  // A dot links to the page of its case, or else to its rows in the table.
  function onDots(event) {
    const dot = event.target.closest("circle");
    const box = event.currentTarget;
    for (const one of box.querySelectorAll("circle")) one.classList.toggle("same", dot !== null && one.dataset.case === dot.dataset.case);
    if (event.type !== "click" || !dot) return;
    if (dot.dataset.page) {
      location.href = dot.dataset.page;
      return;
    }
    document.getElementById("filter").value = data.cases[Number(dot.dataset.case)];
    document.getElementById("method").value = "";
    filter();
    document.getElementById("cases").scrollIntoView();
  }

  // --- the table of cases

  function chosenRecords() {
    const words = state.text.toLocaleLowerCase();
    const records = data.records.filter((record) => (state.method === "" || record[METHOD] === Number(state.method)) && (!words || data.cases[record[CASE]].toLocaleLowerCase().includes(words) || data.methods[record[METHOD]].toLocaleLowerCase().includes(words)));
    const key = { case: (a, b) => collator.compare(data.cases[a[CASE]], data.cases[b[CASE]]), method: (a, b) => collator.compare(data.methods[a[METHOD]], data.methods[b[METHOD]]) }[state.column];
    const at = column(state.column);
    const size = (record) => (record[at] === "∞" ? Infinity : record[at]);
    const numbers = key ? records : records.filter((record) => record[at] !== null);
    numbers.sort(key ?? ((a, b) => (size(a) < size(b) ? -1 : Number(size(a) > size(b)))));
    if (state.falling) numbers.reverse();
    // Cases without a value come last in both directions.
    return key ? numbers : [...numbers, ...records.filter((record) => record[at] === null)];
  }

  function cell(text, className = "") {
    const element = document.createElement("td");
    element.setAttribute("role", "cell");
    element.className = className;
    element.textContent = text;
    return element;
  }

  function row(record) {
    const line = document.createElement("tr");
    line.setAttribute("role", "row");
    const name = cell("");
    const page = record[PAGE] || data.together[record[CASE]];
    if (page) {
      const link = document.createElement("a");
      link.href = page;
      link.textContent = data.cases[record[CASE]];
      name.append(link);
    } else {
      name.textContent = data.cases[record[CASE]];
    }
    const numbers = data.measures.map((measure) => {
      const value = record[column(measure)];
      const entry = cell(decimal(value), "number");
      entry.dataset.name = data.names[data.measures.indexOf(measure)];
      return entry;
    });
    const beside = data.together[record[CASE]];
    if (beside && record[PAGE]) {
      const link = document.createElement("a");
      link.href = beside;
      link.textContent = "all methods";
      link.className = "quiet unprinted";
      link.setAttribute("aria-label", `${data.cases[record[CASE]]}: all methods side by side`);
      name.append(" ", link);
    }
    line.append(name, cell(data.methods[record[METHOD]]), ...numbers);
    return line;
  }

  function fill() {
    const records = chosenRecords();
    const table = document.getElementById("case-table");
    table.tBodies[0].replaceChildren(...records.slice(0, state.shown).map(row));
    const shown = Math.min(state.shown, records.length);
    document.getElementById("count").textContent = `${shown} of ${records.length} shown`;
    document.getElementById("more").hidden = shown === records.length;
    for (const button of table.querySelectorAll("thead button")) {
      const sorted = button.dataset.column === state.column;
      button.closest("th").setAttribute("aria-sort", sorted ? (state.falling ? "descending" : "ascending") : "none");
    }
  }

  function filter() {
    state.text = document.getElementById("filter").value.trim();
    state.method = document.getElementById("method").value;
    state.shown = STEP;
    fill();
  }

  function measure(name) {
    Object.assign(state, { measure: name, column: name, falling: data.descending[data.measures.indexOf(name)], shown: STEP });
    for (const block of document.querySelectorAll(".measure")) block.hidden = block.dataset.measure !== name;
    for (const box of document.querySelectorAll(".dots")) if (box.dataset.measure === name) drawDots(box);
    fill();
  }

  for (const input of document.querySelectorAll("input[name=measure]")) input.addEventListener("change", () => measure(input.value));
  for (const box of document.querySelectorAll(".dots")) for (const kind of ["pointerover", "pointerleave", "click"]) box.addEventListener(kind, onDots);
  for (const button of document.querySelectorAll("#case-table thead button")) {
    button.addEventListener("click", () => {
      state.falling = state.column === button.dataset.column && !state.falling;
      state.column = button.dataset.column;
      fill();
    });
  }
  document.getElementById("filter").addEventListener("input", filter);
  document.getElementById("method").addEventListener("change", filter);
  document.getElementById("more").addEventListener("click", () => {
    state.shown += STEP;
    fill();
  });
  window.addEventListener("resize", () => document.querySelectorAll(`.dots[data-measure="${state.measure}"]`).forEach(drawDots));
  measure(document.querySelector("input[name=measure]:checked").value);
  document.getElementById("cases").dataset.ready = "yes";
})();
