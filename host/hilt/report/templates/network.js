"use strict";
function hiltNetwork(root, view) {
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = { vta: "--vta", native: "--native", numpy: "--numpy", float: "--float", view: "--view",
    crossing: "--crossing", start: "--start", between: "--between", cpu: "--numpy" };
  const total = view.latency.total || 1;
  const colour = (kind) => `var(${COLOURS[kind] || "--view"})`;
  const find = (name) => root.querySelector(name);
  function make(name, facts, parent) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(facts)) made.setAttribute(key, value);
    if (parent) parent.appendChild(made);
    return made;
  }
  function time(us, like = us) {  // in the unit of `like`
    if (like >= 10000) return `${(us / 1000).toFixed(2)} ms`;
    return `${us >= 100 ? us.toFixed(1) : us.toPrecision(3)} µs`;
  }
  const number = (value) => Math.round(value).toLocaleString("en");

  // the graph

  const svg = find(".canvas svg"), plane = make("g", {}, svg);
  const boxes = [];
  function layOut() {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 30, marginx: 12, marginy: 12 });
    graph.setDefaultEdgeLabel(() => ({}));
    const most = Math.max(...view.nodes.map((node) => node.microseconds), 1e-9);
    view.nodes.forEach((node, place) => {
      const least = Math.max(84, 7 * node.name.length + 18);
      graph.setNode(String(place), { width: least + 260 * node.microseconds / most, height: 30 });
    });
    graph.setNode("-1", { width: 80, height: 24 });
    graph.setNode(String(view.nodes.length), { width: 80, height: 24 });
    view.edges.forEach(([from, to, tensor], place) => graph.setEdge(String(from), String(to), { tensor }, String(place)));
    dagre.layout(graph);
    return graph;
  }
  const laid = layOut(), size = laid.graph();
  for (const each of laid.edges()) {
    const edge = laid.edge(each);
    const path = edge.points.map((point, place) => `${place ? "L" : "M"}${point.x.toFixed(1)},${point.y.toFixed(1)}`);
    make("title", {}, make("path", { class: "edge", d: path.join("") }, plane)).textContent = edge.tensor;
  }
  for (const name of laid.nodes()) {
    const place = Number(name), box = laid.node(name), node = view.nodes[place];
    const group = make("g", { class: "node", transform: `translate(${box.x - box.width / 2},${box.y - box.height / 2})` }, plane);
    make("rect", { width: box.width, height: box.height, fill: node ? colour(node.where) : "#3d4653" }, group);
    const text = make("text", { x: box.width / 2, y: box.height / 2 + 4, "text-anchor": "middle" }, group);
    text.textContent = node ? node.name : place < 0 ? "input" : "output";
    if (!node) continue;
    make("title", {}, group).textContent = `${node.name}: ${node.op}, ${time(node.microseconds)}`;
    group.addEventListener("click", () => choose(place, false));
    boxes[place] = group;
  }
  let scale = 1, left = 0, top = 0;
  const move = () => plane.setAttribute("transform", `translate(${left},${top}) scale(${scale})`);
  function fit() {
    const width = svg.clientWidth, height = svg.clientHeight;
    scale = Math.min(width / size.width, Math.max(height / size.height, 0.55), 1.2);
    left = (width - scale * size.width) / 2;
    top = Math.max((height - scale * size.height) / 2, 0);
    move();
  }
  function zoom(factor, x, y) {
    const next = Math.min(Math.max(scale * factor, 0.04), 4);
    left = x - (x - left) * next / scale;
    top = y - (y - top) * next / scale;
    scale = next;
    move();
  }
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) { top -= event.deltaY; left -= event.deltaX; move(); }
    else zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.offsetX, event.offsetY);
    event.preventDefault();
  }, { passive: false });
  let dragged = null;
  svg.addEventListener("pointerdown", (event) => { dragged = [event.clientX, event.clientY]; });
  window.addEventListener("pointerup", () => { dragged = null; });
  window.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    left += event.clientX - dragged[0];
    top += event.clientY - dragged[1];
    dragged = [event.clientX, event.clientY];
    move();
  });
  const middle = (factor) => () => zoom(factor, svg.clientWidth / 2, svg.clientHeight / 2);
  find(".in").addEventListener("click", middle(1.3));
  find(".out").addEventListener("click", middle(1 / 1.3));
  find(".fit").addEventListener("click", () => {
    scale = Math.min(svg.clientWidth / size.width, svg.clientHeight / size.height, 1.2);
    left = (svg.clientWidth - scale * size.width) / 2;
    top = (svg.clientHeight - scale * size.height) / 2;
    move();
  });

  // a node's facts

  const facts = find(".facts");
  function rows(node) {
    const found = [["operator", node.op], ["runs on", { vta: "VTA", view: "nothing: a view" }[node.where] || `processor: ${node.engine}`],
      ["time", `${time(node.microseconds)}, ${(100 * node.microseconds / total).toFixed(1)} % of the inference`],
      ["shape", `${node.dtype} ${node.shape.join(" × ")}`]];
    if (node.scale) found.push(["scale", `2^${Math.round(Math.log2(node.scale))}`]);
    if (node.decibels !== null) found.push(["signal to noise", `${node.decibels.toFixed(1)} dB`]);
    if (node.cycles) found.push(["cycles", number(node.cycles)], ["of its bound", `${(100 * node.bound_share).toFixed(1)} %`],
      ["multipliers", node.macs ? `${(100 * node.utilisation).toFixed(1)} % used` : "not used"],
      ["schedule", node.schedule], ["knobs", Object.entries(node.knobs).map(([name, value]) => `${name}=${value}`).join(" ")]);
    found.push(["why there", node.reason || "-"]);
    return found;
  }
  function choose(place, show) {
    for (const old of root.querySelectorAll(".chosen")) old.classList.remove("chosen");
    const node = view.nodes[place];
    boxes[place].classList.add("chosen");
    for (const bar of root.querySelectorAll(`[data-node="${place}"]`)) bar.classList.add("chosen");
    facts.replaceChildren();
    const title = document.createElement("h3"), list = document.createElement("dl");
    title.textContent = node.name;
    for (const [name, value] of rows(node)) {
      const term = document.createElement("dt"), fact = document.createElement("dd");
      term.textContent = name;
      fact.textContent = value;
      list.append(term, fact);
    }
    facts.append(title, list);
    if (show) {
      const box = laid.node(String(place));
      left = svg.clientWidth / 2 - scale * box.x;
      top = svg.clientHeight / 2 - scale * box.y;
      move();
    }
  }

  // the timeline

  const line = find(".time svg"), tracks = view.latency.images_per_second ? ["processor", "VTA", "image"] : ["processor", "VTA"];
  const end = Math.max(...view.slices.map((each) => each.began + each.microseconds), 1e-9);
  let from = 0, until = end;
  function draw() {
    line.replaceChildren();
    const width = line.clientWidth || 600, edge = width < 500 ? 8 : 74, span = until - from;
    const across = (at) => edge + (width - edge - 8) * (at - from) / span;
    line.setAttribute("height", 104);
    line.setAttribute("viewBox", `0 0 ${width} 104`);
    tracks.slice(0, 2).forEach((name, place) => {
      if (edge > 20) make("text", { x: 6, y: 30 + 36 * place }, line).textContent = name;
    });
    for (const each of view.slices) {
      const begin = Math.max(each.began, from), stop = Math.min(each.began + each.microseconds, until);
      if (stop <= begin) continue;
      const row = each.kind === "vta" ? 1 : 0, kind = each.node !== null ? view.nodes[each.node].where : each.kind;
      const place = { x: across(begin), y: 12 + 36 * row, width: Math.max(across(stop) - across(begin), 0.4), height: 28 };
      const bar = make("rect", { ...place, fill: colour(kind), "fill-opacity": each.image % 2 ? 0.6 : 1 }, line);
      make("title", {}, bar).textContent = `${each.name}: ${time(each.microseconds)} from ${time(each.began)}`;
      if (each.node !== null) {
        bar.dataset.node = each.node;
        bar.addEventListener("click", () => choose(each.node, true));
      }
      if (place.width > 7 * each.name.length + 6) {
        make("text", { class: "in", x: place.x + 4, y: place.y + 18 }, line).textContent = each.name;
      }
    }
    for (let tick = 0; tick <= 4; tick += 1) {
      const at = from + span * tick / 4, anchor = tick === 0 ? "start" : tick === 4 ? "end" : "middle";
      make("text", { x: across(at), y: 98, "text-anchor": anchor }, line).textContent = time(at, until);
    }
  }
  line.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const at = from + (until - from) * event.offsetX / line.clientWidth, factor = event.deltaY < 0 ? 0.8 : 1.25;
    from = Math.max(0, at - (at - from) * factor);
    until = Math.min(end, at + (until - at) * factor);
    draw();
  }, { passive: false });
  let start = null;
  line.addEventListener("pointerdown", (event) => { start = event.offsetX; });
  line.addEventListener("pointerup", (event) => {
    if (start === null || Math.abs(event.offsetX - start) < 8) return;
    const edge = line.clientWidth < 500 ? 8 : 74, room = line.clientWidth - edge - 8;
    const at = (x) => from + (until - from) * Math.min(Math.max((x - edge) / room, 0), 1);
    [from, until] = [at(Math.min(start, event.offsetX)), at(Math.max(start, event.offsetX))];
    draw();
  });
  line.addEventListener("dblclick", () => { [from, until] = [0, end]; draw(); });
  for (const row of root.querySelectorAll("tbody tr[data-node]")) {
    row.addEventListener("click", () => choose(Number(row.dataset.node), true));
  }
  new ResizeObserver(() => draw()).observe(line.parentElement);
  fit();
  draw();
  const slowest = view.nodes.reduce((best, node, place) => node.microseconds > view.nodes[best].microseconds ? place : best, 0);
  if (view.nodes.length) choose(slowest, false);
}
