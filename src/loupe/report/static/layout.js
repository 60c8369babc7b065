// Where each engine saw the parts of the page, beside the ground truth's areas: boxes with order, label, confidence.

/** What detectors call things, by the colour of the kind; what none of these names is text. */
const LABEL_KINDS = [
  ["ignored", /header|footer|page.?num|^number$|aside|seal|watermark|abandon/],
  ["table", /table/],
  ["formula", /formula|equation|math/],
  ["title", /title|heading|section/],
  ["figure", /figure|picture|image|chart|graphic|logo/],
];
const KIND_NAMES = { text: "text", title: "titles", formula: "formulas", table: "tables", figure: "figures", ignored: "margins" };

const kindOfLabel = (label) => {
  const plain = label.toLowerCase();
  if (/caption|footnote/.test(plain)) return "text";
  return (LABEL_KINDS.find(([, names]) => names.test(plain)) || ["text"])[0];
};

/** One frame for the ground truth, where it marks areas, and one for each engine that tells any. */
function drawLayout() {
  const { payload, sample } = view;
  const page = document.getElementById("sample");
  const frames = payload.answers.flatMap((answer, place) => (answer?.layout ? [engineFrame(payload, sample, place)] : []));
  if (payload.page?.size && payload.page.regions.length) frames.unshift(truthFrame(payload, sample));
  page.querySelector(".panes").replaceChildren(make("div", { class: "layouts" }, ...frames));
}

function layoutFigure(title, count, payload, boxes, ...below) {
  const frame = make("div", { class: "page-frame" });
  const source = payload.pictures.find((picture) => picture.src)?.src;
  const ratio = payload.ratio || (payload.page?.size ? payload.page.size[0] / payload.page.size[1] : 0.75);
  frame.style.setProperty("--page-ratio", String(ratio));
  frame.classList.toggle("blank", !source);
  if (source) frame.append(make("img", { src: source, alt: "page image" }));
  const said = make("p", { class: "area-said", "aria-live": "polite" });
  frame.append(...boxes);
  // What is pointed at, or chosen by a finger or a key, is told in words below the page.
  const tell = (event) => { const box = event.target.closest?.(".area"); if (box) said.textContent = box.title; };
  for (const name of ["pointerover", "focusin", "click"]) frame.addEventListener(name, tell);
  const head = make("figcaption", {}, make("strong", {}, make("bdi", {}, title)), make("span", { class: "muted" }, ` ${count}`));
  return make("figure", { class: "layout" }, head, frame, said, ...below);
}

function engineFrame(payload, sample, place) {
  const { lines, areas, hidden, unusable } = payload.answers[place].layout;
  const kinds = new Map();
  const boxes = areas.map(([left, top, right, bottom, label, confidence], number) => {
    const kind = lines ? "text" : kindOfLabel(label);
    kinds.set(kind, (kinds.get(kind) || 0) + 1);
    return areaBox([left, top, right, bottom], kind, lines ? "" : label, number + 1, confidence, label);
  });
  const noun = lines ? "line" : "area";
  const notes = [];
  if (hidden) notes.push(notice(`${hidden.toLocaleString("en")} more are not shown; predictions.jsonl has them.`));
  if (unusable) notes.push(notice(`${unusable.toLocaleString("en")} have no usable box.`));
  const legend = lines ? [] : [kindLegend(kinds)];
  return layoutFigure(sample.group.engines[place], `${areas.length.toLocaleString("en")} ${noun}${areas.length === 1 ? "" : "s"}`, payload, boxes, ...legend, ...notes);
}

function truthFrame(payload, sample) {
  const regions = regionsOf(payload.page), [width, height] = payload.page.size;
  const kinds = new Map();
  const boxes = regions.map((region) => {
    kinds.set(region.kind, (kinds.get(region.kind) || 0) + 1);
    const box = [region.left / width, region.top / height, (2 * region.x - region.left) / width, (2 * region.y - region.top) / height];
    return areaBox(box, region.kind, region.category, region.order, null, region.category);
  });
  const notes = payload.page.hidden ? [notice(`${payload.page.hidden} more areas are not shown.`)] : [];
  return layoutFigure("Ground truth", `${regions.length.toLocaleString("en")} areas`, payload, boxes, kindLegend(kinds), ...notes);
}

/** A box with its tag: place in the order, label and confidence, as far as they are known. */
function areaBox([left, top, right, bottom], kind, label, order, confidence, words) {
  const sure = confidence === null ? "" : `${Math.round(100 * confidence)} %`;
  const told = [order === null ? "" : String(order), words, sure].filter(Boolean).join(" · ");
  const tag = make("span", { class: "area-tag" }, order === null ? "" : make("b", {}, String(order)),
    ...(label ? [make("span", { class: "area-label", dir: "auto" }, ...visibleText(label.replaceAll("_", " ")))] : []), ...(sure && label ? [make("span", { class: "area-sure" }, sure)] : []));
  const near = `${top < 0.025 ? " at-top" : ""}${left < 0.05 ? " at-left" : ""}`;
  const box = make("div", { class: `area k-${kind}${label ? "" : " line"}${near}`, title: told, tabindex: 0, role: "img", "aria-label": told }, tag);
  Object.entries({ left, top, width: right - left, height: bottom - top }).forEach(([name, share]) => box.style.setProperty(name, `${100 * share}%`));
  return box;
}

function kindLegend(kinds) {
  const entries = KINDS.filter((kind) => kinds.has(kind)).map((kind) => make("span", { class: "legend-step" },
    make("span", { class: `area-swatch k-${kind}` }), `${KIND_NAMES[kind]} ${kinds.get(kind)}`));
  return make("p", { class: "legend areas" }, ...entries);
}

layoutView = { draw: drawLayout };
