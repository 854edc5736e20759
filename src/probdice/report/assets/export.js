"use strict";
// Filter the table of groups, and save the content of the page.
(() => {
  const main = document.querySelector("main");
  const table = document.querySelector(".groups");
  const body = table.tBodies[0];
  const graph = document.querySelector(".graph");

  const restart = selection.rove(body, ".pick");
  if (graph.querySelector(".region")) selection.rove(graph, ".region");

  const filter = document.getElementById("group-filter");
  filter.addEventListener("input", () => {
    const words = filter.value.trim().toLocaleLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = ![row.cells[0], row.cells[1]].some((cell) => cell.dataset.value.toLocaleLowerCase().includes(words));
      shown += !row.hidden;
    }
    document.getElementById("group-count").textContent = words ? `${shown} of ${body.rows.length} shown` : "";
    if (shown) restart();
  });

  // --- numbers

  async function result() {
    const packed = document.getElementById("result").textContent;
    return new TextDecoder().decode(await unpackBytes(packed));
  }

  // Like probdice.text.escaping: put an apostrophe before text that a spreadsheet would evaluate.
  const isFormula = (text) =>
    /^([\t\r\n']|\s*[=+@＝＋－＠-])/.test(text) &&
    !/^[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|inf)$/.test(text);

  const quoted = (value) => {
    const plain = Array.isArray(value) ? value.join("; ") : String(value ?? "");
    const text = isFormula(plain) ? `'${plain}` : plain;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };

  function csv(content) {
    const names = Object.keys(content.groups[0] ?? {});
    const volumes = content.pixel_volume ? ["reference_volume", "prediction_volume"] : [];
    const distances = Object.keys(content.boundaries?.means ?? {});
    const lines = [[...names, ...volumes.map((name) => `${name}_ml`), ...distances]];
    for (const [k, group] of content.groups.entries()) {
      const millilitres = volumes.map((name) => (group[name] * content.pixel_volume) / 1000);
      const cells = distances.map((name) => content.boundaries.groups[k][name]);
      lines.push([...names.map((name) => group[name]), ...millilitres, ...cells]);
    }
    return `${lines.map((line) => line.map(quoted).join(",")).join("\r\n")}\r\n`;
  }

  const on = (id, act) => document.getElementById(id)?.addEventListener("click", act);
  on("save-json", async () => saving.save(saving.name() + ".json", await result(), "application/json"));
  on("save-csv", async () => saving.save(saving.name("groups") + ".csv", csv(JSON.parse(await result())), "text/csv"));
  on("copy-command", () => saving.copy(document.getElementById("command").textContent, "Command"));

  // --- saving the diagram

  const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "font-family", "opacity"];

  function drawing() {
    diagram.all();
    const copy = graph.cloneNode(true);
    const [width, height] = [graph.clientWidth, graph.clientHeight];
    const originals = graph.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((element, k) => {
      const style = getComputedStyle(originals[k]);
      for (const name of LOOK) element.setAttribute(name, style.getPropertyValue(name));
    });
    for (const element of copy.querySelectorAll(".hit")) element.remove();
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
    return [new XMLSerializer().serializeToString(copy), width, height];
  }

  on("graph-svg", () => saving.save(saving.name("correspondence") + ".svg", drawing()[0], "image/svg+xml"));
  on("graph-png", async () => {
    const [text, width, height] = drawing();
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await picture.decode();
    const canvas = document.createElement("canvas");
    const finer = Math.min(2, 16_000 / height);
    [canvas.width, canvas.height] = [width * finer, height * finer];
    const context = canvas.getContext("2d");
    context.fillStyle = getComputedStyle(document.body).backgroundColor;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => saving.save(saving.name("correspondence") + ".png", blob));
  });

  main.dataset.ready = "yes";
})();
