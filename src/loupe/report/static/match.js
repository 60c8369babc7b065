// How an answer was matched: areas of the page on the left, the pieces of the answer on the right, linked.

/** Where the pointer was last: what comes to lie under a resting pointer is not pointed at. */
const pointer = { x: -1, y: -1, target: null };
const match = { engine: 0, orders: "predicted", faulty: false, regions: [], units: new Map(), unscored: new Map(), row: null, link: null };
/** More pieces without a score than this, for one reason, are folded up. */
const FOLDED_FROM = 6;
const ORDER_NAMES = { none: "Hidden", true: "True", predicted: "Predicted", both: "Both" };

/** Draws both sides for the chosen engine. */
function drawMatch() {
  const { payload, sample } = view;
  if (!payload.matches[match.engine]) match.engine = payload.matches.findIndex(Boolean);
  const found = payload.matches[match.engine];
  match.regions = regionsOf(payload.page);
  match.units = byRegion(found.units.map((unit) => unit.regions));
  match.unscored = byRegion(found.unscored.map(([, , regions]) => regions));
  const page = document.getElementById("sample");
  page.querySelector(".sample-pictures").replaceChildren(...matchPicture(payload, sample, found));
  const list = make("ol", { class: "units" }, ...inOrder(found.units).map(([unit, number]) => unitRow(unit, number)));
  list.classList.toggle("faulty-only", match.faulty);
  const box = make("div", { class: "match rows" }, ...matchHead(payload, sample, found), list, ...unscoredList(found));
  page.querySelector(".panes").replaceChildren(box);
  listen(page, box);
}

function byRegion(lists) {
  const found = new Map();
  lists.forEach((regions, number) => regions.forEach((region) => found.set(region, [...(found.get(region) || []), number])));
  return found;
}

const inOrder = (units) => units.map((unit, number) => [unit, number]);

/** Areas that were to be scored and got nothing. */
function missingRegions(found) {
  const got = new Set(found.units.filter((unit) => unit.step !== "none").flatMap((unit) => unit.regions));
  return new Set(found.units.filter((unit) => unit.step === "none").flatMap((unit) => unit.regions).filter((region) => !got.has(region)));
}

function matchPicture(payload, sample, found) {
  const shown = pictures(payload, sample);
  if (!payload.page.size) return shown;
  const [width, height] = payload.page.size;
  const svg = overlay(payload.page, match.regions, missingRegions(found), match.orders, found);
  const first = shown.find((element) => element.querySelector?.(".zoom img"));
  const image = first?.querySelector(".zoom img") || null;
  const frame = pageFrame(image, svg, width / height);
  frame.classList.toggle("blank", !image);
  if (first) {
    first.querySelector(".zoom").replaceWith(frame);
    const button = make("button", { type: "button", class: "quiet enlarge", title: "Enlarge (z)" }, "Enlarge");
    button.addEventListener("click", () => zoom(payload.pictures.find((picture) => picture.src)?.src));
    first.querySelector("figcaption").append(" ", button);
  }
  const rest = payload.page.hidden ? [notice(`${payload.page.hidden} more areas are not shown.`)] : [];
  return [...(first ? [] : [frame]), matchLegend(found), ...rest, ...shown];
}

function matchLegend(found) {
  const counts = new Map();
  for (const region of match.regions) counts.set(region.kind, (counts.get(region.kind) || 0) + 1);
  const missing = missingRegions(found).size;
  const names = { text: "text", title: "titles", formula: "formulas", table: "tables", figure: "figures", ignored: "never scored" };
  const entries = KINDS.filter((kind) => counts.has(kind)).map((kind) => make("span", { class: "legend-step" },
    make("span", { class: `area-swatch k-${kind}` }), `${names[kind]} ${counts.get(kind)}`));
  if (missing) entries.push(make("span", { class: "legend-step missing" }, make("span", { class: "area-swatch missing" }), `nothing matched ${missing}`));
  return make("p", { class: "legend areas" }, ...entries);
}

function matchHead(payload, sample, found) {
  const controls = make("div", { class: "match-controls" });
  if (payload.matches.length > 1) {
    controls.append(switchOf("Engine", sample.group.engines.map((label, place) => [place, label]), match.engine, (place) => { match.engine = place; }, (place) => !payload.matches[place]));
  }
  if (found.trueOrder.length > 1) {
    controls.append(switchOf("Reading order", Object.entries(ORDER_NAMES), match.orders, (name) => { match.orders = name; }));
  }
  const faulty = make("button", { type: "button", class: "quiet", "aria-pressed": String(match.faulty) }, "Faulty only");
  faulty.addEventListener("click", () => { match.faulty = !match.faulty; redraw(".match-controls > .quiet"); });
  if (found.units.length > 1) controls.append(faulty);
  const engine = sample.engines[match.engine];
  const missing = found.units.filter((unit) => unit.step === "none").length;
  const parts = found.units.length > 1 || payload.page.size ? [`${found.units.length - missing} of ${found.units.length + found.hiddenUnits} blocks matched`] : [];
  if (engine.cost) parts.push(`costs ${costText(engine.cost, sample.group)}`);
  if (found.predictedOrder.length > 1) parts.push(orderText(found));
  const flags = found.flags.map(([name, meaning, count]) => make("span", { class: "pill flag", title: meaning }, make("code", {}, name), count === 1 ? "" : ` ${count.toLocaleString("en")}`));
  const answer = payload.answers[match.engine];
  const failed = answer?.failed ? [failureBox(OUTCOMES[answer.outcome], answer.error || "No message.")] : [];
  return [...failed, make("p", { class: "match-line" }, parts.join(" · ")), ...(flags.length ? [make("p", { class: "match-flags" }, ...flags)] : []), controls];
}

/** How many steps of the predicted order are steps of the true one. */
function orderText(found) {
  const follows = new Map(found.trueOrder.map((region, place) => [region, found.trueOrder[place + 1]]));
  const steps = found.predictedOrder.slice(1);
  const wrong = steps.filter((region, place) => follows.get(found.predictedOrder[place]) !== region).length;
  return wrong ? `${wrong} of ${steps.length} steps of the reading order are wrong` : "reading order as annotated";
}

function switchOf(label, entries, chosen, choose, isOff = () => false) {
  const box = make("div", { class: "switch", role: "group", "aria-label": label }, make("span", { class: "switch-label" }, label));
  for (const [value, text] of entries) {
    const button = make("button", { type: "button", "aria-pressed": String(String(value) === String(chosen)), "data-choice": `${label} ${value}`, disabled: isOff(value) }, make("bdi", {}, text));
    button.addEventListener("click", () => { choose(value); redraw(`[data-choice="${CSS.escape(`${label} ${value}`)}"]`); });
    box.append(button);
  }
  return box;
}

/** Draws again and puts the focus back on the button that was pressed. */
function redraw(selector) {
  drawMatch();
  document.querySelector(`#sample ${selector}`)?.focus({ preventScroll: true });
}

function cutText(value) {
  const [text, more] = Array.isArray(value) ? value : [value, 0];
  const note = more ? [make("span", { class: "muted" }, ` … ${more.toLocaleString("en")} more characters`)] : [];
  return make("div", { class: "text piece", dir: "auto" }, ...(text === "" ? [make("span", { class: "nothing" }, "nothing")] : visibleText(text)), ...note);
}

function unitRow(unit, number) {
  const areas = unit.regions.map((region) => match.regions[region]).filter(Boolean);
  const missing = unit.step === "none";
  const kind = areas[0]?.kind || "text";
  const orders = areas.map((area) => area.order).filter((order) => order !== null);
  const swatch = unit.value === null ? "" : make("span", { class: `swatch q${stepOf(Math.max(0, unit.value))}` });
  const head = make("div", { class: "unit-head" },
    areas.length ? make("span", { class: `badge k-${kind}` }, orders.length ? orders.join(", ") : "–") : "",
    make("span", { class: "unit-kind" }, areas[0]?.category.replaceAll("_", " ") || unit.element),
    make("span", { class: "unit-value" }, swatch, missing ? "nothing matched" : unit.verdict),
    make("span", { class: "spring" }),
    missing ? "" : make("span", { class: "step", title: "matching step and distance" }, unit.step + (unit.distance === null ? "" : ` · ${Number(unit.distance.toFixed(3))}`)));
  const perfect = unit.value === 1 && !missing;
  const row = make("li", { class: `unit${missing ? " missing" : ""}${perfect ? " perfect" : ""}`, tabindex: 0, "data-unit": number }, head);
  if (unit.note) row.append(notice(unit.note));
  if (unit.grids) row.append(tableGrids(unit.grids));
  if (unit.formulas && !missing) row.append(formulaPair(unit.formulas));
  const sides = make("div", { class: "sides" });
  // A formula that is the whole sample is compared already, and the other views have its texts.
  const whole = unit.formulas && !unit.regions.length;
  if (!whole && unit.reference !== undefined && !(perfect && unit.pieces)) sides.append(side("Ground truth", [unit.reference]));
  if (!whole && unit.pieces !== undefined) sides.append(side(perfect ? "" : "Answer", unit.pieces));
  if (sides.childElementCount) row.append(sides);
  if (unit.compared && !missing) row.append(comparedDetails(unit.compared));
  return row;
}

function side(title, texts) {
  const parts = texts.length ? texts.map(cutText) : [make("div", { class: "text piece nothing" }, "nothing")];
  return make("div", { class: "side" }, title ? make("h4", {}, title) : "", ...parts);
}

/** The texts as the metric got them, compared when first asked for. */
function comparedDetails([prediction, reference]) {
  const details = make("details", {}, make("summary", {}, "As compared"));
  const plain = (value) => (Array.isArray(value) ? value[0] : value);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(differenceBlock(plain(prediction), plain(reference), "characters"));
  });
  return details;
}

/** Pieces that no score knows, by reason; many for one reason are folded up. */
function unscoredList(found) {
  if (!found.unscored.length) return [];
  const reasons = new Map();
  found.unscored.forEach((piece, number) => reasons.set(piece[1], [...(reasons.get(piece[1]) || []), unscoredRow(piece, number)]));
  const groups = [...reasons].map(([reason, rows]) => make("details", { class: "why-unscored", open: rows.length <= FOLDED_FROM },
    make("summary", {}, `${capital(reason)} (${rows.length})`), make("ol", { class: "units" }, ...rows)));
  const more = found.hiddenUnscored ? [notice(`${found.hiddenUnscored.toLocaleString("en")} more are in scores.jsonl.`)] : [];
  return [make("h3", {}, `In no score (${found.unscored.length + found.hiddenUnscored})`), ...groups, ...more];
}

function unscoredRow([text, reason, regions], number) {
  const areas = regions.map((region) => match.regions[region]).filter(Boolean);
  const head = make("div", { class: "unit-head" }, ...areas.map((area) => make("span", { class: "step" }, area.category.replaceAll("_", " "))));
  return make("li", { class: `unit unscored${reason === "unmatched" ? " invented" : ""}`, tabindex: 0, "data-unscored": number }, head, cutText(text));
}

function costText(cost, group) {
  const measure = group.measures.find((candidate) => candidate.name === group.headline);
  return `${measure?.unit === "fraction" ? `${(100 * cost).toFixed(2)} points` : Number(cost.toPrecision(3))} of ${measure?.title}`;
}

function listen(page, box) {
  const frame = page.querySelector(".page-frame");
  const choose = (target) => {
    const row = target.closest(".unit");
    if (row) showLink(row);
    const cell = target.closest("[data-change]");
    if (row?.querySelector(".grids")) lightUp(row, cell ? cell.dataset.change : null);
  };
  onPointing(box, choose);
  box.addEventListener("focusin", (event) => choose(event.target));
  box.addEventListener("pointerleave", () => hideLink());
  box.addEventListener("click", (event) => { if (!event.target.closest("summary, details, button")) event.target.closest(".unit")?.classList.toggle("whole"); });
  box.addEventListener("keydown", (event) => {
    const row = event.target.closest(".unit");
    if (row && event.target === row && event.key === "Enter") row.classList.toggle("whole");
  });
  if (!frame) return;
  onPointing(frame, (target) => {
    const row = rowOf(target, box);
    if (row) { bringIntoBox(row, box); showLink(row, Number(target.dataset.region)); } else hideLink();
  });
  frame.addEventListener("pointerleave", () => hideLink());
  frame.addEventListener("click", (event) => {
    const row = rowOf(event.target, box);
    if (row) { row.classList.add("whole"); row.focus({ preventScroll: true }); row.scrollIntoView({ block: "nearest" }); }
  });
}

/** Calls `choose` with what the pointer has moved on to. Pages that move below a pointer at rest choose nothing. */
function onPointing(element, choose) {
  element.addEventListener("pointermove", (event) => {
    const rested = pointer.x === event.screenX && pointer.y === event.screenY;
    if (rested || pointer.target === event.target) return;
    pointer.target = event.target;
    choose(event.target);
  });
  element.addEventListener("pointerleave", () => { pointer.target = null; });
}

/** The row that tells about an area, if any does. */
function rowOf(target, box) {
  if (!target.dataset || target.dataset.region === undefined) return null;
  const region = Number(target.dataset.region);
  const unit = match.units.get(region), piece = match.unscored.get(region);
  if (unit) return box.querySelector(`[data-unit="${unit[0]}"]`);
  return piece ? box.querySelector(`[data-unscored="${piece[0]}"]`) : null;
}

function bringIntoBox(row, box) {
  row.closest("details.why-unscored")?.setAttribute("open", "");
  if (box.scrollHeight <= box.clientHeight) return;
  const [inner, outer] = [row.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - 60;
}

/** Lights up a row and its areas, and draws a line between them where both are in sight. */
function showLink(row) {
  hideLink();
  const found = view.payload.matches[match.engine];
  const regions = row.dataset.unit !== undefined ? found.units[Number(row.dataset.unit)].regions : found.unscored[Number(row.dataset.unscored)][2];
  const svg = document.querySelector("#sample .overlay");
  const areas = regions.map((region) => svg?.querySelector(`polygon[data-region="${region}"]`)).filter(Boolean);
  match.row = row;
  row.classList.add("linked");
  if (!areas.length) return;
  svg.classList.add("choosing");
  areas.forEach((area) => area.classList.add("linked"));
  match.link = draw("svg", { class: "link", "aria-hidden": "true" });
  for (const area of areas) {
    const from = area.getBoundingClientRect(), to = row.querySelector(".unit-head").getBoundingClientRect();
    if (from.right > to.left || from.bottom < 48 || from.top > innerHeight || to.bottom < 48 || to.top > innerHeight) continue;
    const [x1, y1, x2, y2] = [from.right, from.top + from.height / 2, to.left - 12, to.top + to.height / 2];
    match.link.append(draw("path", { d: `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}` }), draw("circle", { cx: x1, cy: y1, r: 3.5 }));
  }
  document.body.append(match.link);
}

function hideLink() {
  match.link?.remove();
  match.link = match.row = null;
  for (const element of document.querySelectorAll("#sample .linked")) element.classList.remove("linked");
  document.querySelector("#sample .overlay")?.classList.remove("choosing");
}

for (const name of ["pointermove", "pointerdown"]) {
  document.addEventListener(name, (event) => Object.assign(pointer, { x: event.screenX, y: event.screenY }));
}
// The line follows whatever scrolls under it.
document.addEventListener("scroll", () => { if (match.row) showLink(match.row); }, { passive: true, capture: true });
matchView = { draw: drawMatch, hide: hideLink };
