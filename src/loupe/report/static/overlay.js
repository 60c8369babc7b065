// What the ground truth marks, drawn over the picture of a page: areas by kind, what is missing, the reading orders.

const KINDS = ["title", "text", "formula", "table", "figure", "ignored"];

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Areas as objects; `kind` decides the colour. */
function regionsOf(page) {
  return page.regions.map(([polygon, category, order, scored], number) => {
    const xs = polygon.filter((_, place) => place % 2 === 0), ys = polygon.filter((_, place) => place % 2);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const known = KINDS.find((kind) => category.includes(kind)) || (category.includes("equation") ? "formula" : "text");
    const kind = scored || category === "figure" ? known : "ignored";
    return { number, polygon, category, order, scored, kind, left, top, x: (left + right) / 2, y: (top + bottom) / 2 };
  });
}

/** The drawing for one answer. `missing` holds the areas that nothing was matched with. */
function overlay(page, regions, missing, orders, match) {
  const [width, height] = page.size;
  const svg = draw("svg", { class: "overlay", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": "areas of the ground truth on the page" });
  const unit = Math.max(width, height) / 1000;
  svg.append(definitions(unit));
  for (const region of regions) {
    const title = `${region.order === null ? "" : `${region.order} · `}${region.category}${missing.has(region.number) ? " · nothing matched" : ""}`;
    svg.append(draw("polygon", { class: `region k-${region.kind}${missing.has(region.number) ? " missing" : ""}`, "data-region": region.number, points: region.polygon.join(" ") }, draw("title", {}, title)));
  }
  for (const region of regions) {
    if (region.order === null) continue;
    // In the margin beside its area, where there is one, so that it lies on no print.
    const inside = region.left < 11 * unit * String(region.order).length;
    const label = draw("text", { class: `order k-${region.kind}${missing.has(region.number) ? " missing" : ""}`, x: region.left + (inside ? 2 : -3) * unit, y: region.top + 12 * unit, "font-size": 13 * unit, "stroke-width": 3 * unit, "text-anchor": inside ? "start" : "end" });
    label.append(String(region.order));
    svg.append(label);
  }
  if (orders === "true" || orders === "both") svg.append(arrows(match.trueOrder, regions, "true", () => true));
  if (orders === "predicted" || orders === "both") {
    const follows = new Map(match.trueOrder.map((region, place) => [region, match.trueOrder[place + 1]]));
    svg.append(arrows(match.predictedOrder, regions, "predicted", (from, to) => follows.get(from) === to));
  }
  return svg;
}

function definitions(unit) {
  const hatch = draw("pattern", { id: "hatch", width: 9 * unit, height: 9 * unit, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    draw("rect", { width: 3 * unit, height: 9 * unit, class: "hatch" }));
  const heads = ["true", "right", "wrong"].map((name) => draw("marker", { id: `head-${name}`, class: `head ${name}`, viewBox: "0 0 10 10", refX: 8, refY: 5, markerWidth: 13 * unit, markerHeight: 13 * unit, markerUnits: "userSpaceOnUse", orient: "auto" },
    draw("path", { d: "M0 0 10 5 0 10z" })));
  return draw("defs", {}, hatch, ...heads);
}

/** A chain of arrows through the middles of areas; steps that the true order does not have are marked. */
function arrows(chain, regions, name, isRight) {
  const group = draw("g", { class: `arrows ${name}` });
  for (let place = 0; place + 1 < chain.length; place++) {
    const from = regions[chain[place]], to = regions[chain[place + 1]];
    if (!from || !to) continue;
    const good = isRight(from.number, to.number);
    const kind = name === "true" ? "true" : good ? "right" : "wrong";
    // Bent a little, so that both orders can be seen where they agree.
    const bend = name === "true" ? 0.08 : -0.08;
    const control = `${(from.x + to.x) / 2 - bend * (to.y - from.y)} ${(from.y + to.y) / 2 + bend * (to.x - from.x)}`;
    group.append(draw("path", { class: `arrow ${kind}`, d: `M${from.x} ${from.y}Q${control} ${to.x} ${to.y}`, "marker-end": `url(#head-${kind})` }));
  }
  return group;
}

/** The picture of the page with the drawing over it; `ratio` is the shape of the page where there is no picture. */
function pageFrame(picture, svg, ratio) {
  const frame = make("div", { class: "page-frame" });
  frame.style.setProperty("--page-ratio", String(ratio));
  if (picture) frame.append(picture);
  frame.append(svg);
  return frame;
}
