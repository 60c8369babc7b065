// Formulas as CDM drew them: what has a counterpart in one colour, what has none in another; and their LaTeX compared.

/** Pixels of a drawing (200 to the inch) for one on the screen. */
const DRAWN_SCALE = 2;
const summaries = new Map();

/** The drawings of a pair, with those that stand for each other lighting up together, and the difference below. */
function formulaPair(formulas) {
  const [prediction, reference] = formulas.latex.map((value) => (Array.isArray(value) ? value[0] : value));
  const box = make("div", { class: "formula-pair" });
  const drawings = make("div", { class: "drawings" });
  box.append(drawings, make("div", { class: "formula-diff" }, differenceBlock(prediction, reference, "LaTeX"),
    make("p", { class: "muted" }, "LaTeX as CDM normalises it: other spellings of the same symbol are no difference.")));
  fillDrawings(drawings, formulas);
  return box;
}

async function fillDrawings(box, formulas) {
  if (formulas.f1 === null) {
    box.append(notice(`Not drawn: ${formulas.failures[0] || "CDM was not computed"}.`));
    return;
  }
  const packed = await drawingOf(formulas.key);
  if (!packed) {
    box.append(notice(await whyNotDrawn(formulas)));
    return;
  }
  const pair = await unpacked(packed);
  const sides = [["reference", "Ground truth"], ["prediction", "Answer"]].map(([name, title]) => drawnSide(pair[name], title));
  box.append(...sides.map(([figure]) => figure), drawnLegend());
  const reasons = new Set([...pair.reference.boxes, ...pair.prediction.boxes].filter((each) => each[6]).map((each) => `${each[0]} ${each[6]}`));
  if (reasons.size) box.append(make("p", { class: "muted drawn-reasons" }, `${[...reasons].slice(0, 8).join("; ")}${reasons.size > 8 ? "; …" : "."}`));
  if (pair.f1 !== formulas.f1) box.append(notice(`F1 as rendered here: ${pair.f1}; as scored: ${formulas.f1}.`));
  const [reference, prediction] = sides.map(([, rects]) => rects);
  linkBoxes(pair.prediction.boxes, prediction, reference);
}

/** Why a pair has no drawing in this file. */
async function whyNotDrawn(formulas) {
  const { group } = view.sample;
  if (!summaries.has(group)) summaries.set(group, await drawingsOf(group));
  const { runs, note } = summaries.get(group);
  if (note) return `Not drawn: ${note}.`;
  const [drawn, different] = runs[match.engine] || [0, 0];
  const number = (count) => count.toLocaleString("en");
  if (formulas.f1 === 1) return `Exact by CDM. It is not among the ${number(drawn)} rendered formulas of this run.`;
  return `Not rendered: this report shows ${number(drawn)} of the ${number(different)} formulas of this run that differ, lowest CDM first.`;
}

/** A figure, and its boxes as elements. */
function drawnSide(side, title) {
  const found = side.boxes.filter((box) => box[5] >= 0).length;
  const counts = side.boxes.length ? `${found} of ${side.boxes.length} characters matched` : "";
  const caption = make("figcaption", {}, title, counts ? make("span", { class: "muted" }, ` · ${counts}`) : "");
  const figure = make("figure", { class: "drawn" }, caption);
  if (!side.picture) {
    figure.append(notice(`Not drawn: ${side.failure || "nothing visible"}.`));
    return [figure, []];
  }
  const [width, height] = side.size;
  const lost = side.boxes.filter((box) => box[5] < 0).map((box) => box[0]);
  const label = `${title} as drawn: ${counts}${lost.length ? `; without counterpart: ${lost.slice(0, 40).join(" ")}` : ""}`;
  const rects = side.boxes.map(([token, left, top, right, bottom, partner, why]) => draw("rect",
    { class: partner < 0 ? "lost" : "found", x: left, y: top, width: right - left, height: bottom - top },
    draw("title", {}, `${token}${partner < 0 ? ` ${why || "has no counterpart"}` : ""}`)));
  // Large boxes first, so that what stands inside a root can be pointed at.
  const order = rects.map((rect, number) => [rect, side.boxes[number]]).sort(([, a], [, b]) => areaOf(b) - areaOf(a));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...order.map(([rect]) => rect));
  const frame = make("div", { class: "drawn-frame" }, make("img", { src: side.picture, alt: "" }), svg);
  frame.style.setProperty("--drawn-width", `${width / DRAWN_SCALE}px`);
  frame.style.setProperty("--drawn-ratio", String(width / height));
  figure.append(make("div", { class: "drawn-scroll" }, frame));
  if (side.hidden) figure.append(notice(`${side.hidden.toLocaleString("en")} more boxes are not marked.`));
  return [figure, rects];
}

const areaOf = ([, left, top, right, bottom]) => (right - left) * (bottom - top);

/** Pointing at a character lights up its counterpart. */
function linkBoxes(boxes, prediction, reference) {
  boxes.forEach(([, , , , , partner], number) => {
    const both = [prediction[number], reference[partner]];
    if (!both[1]) return;
    for (const rect of both) {
      rect.addEventListener("pointerenter", () => both.forEach((each) => each.classList.add("lit")));
      rect.addEventListener("pointerleave", () => both.forEach((each) => each.classList.remove("lit")));
    }
  });
}

function drawnLegend() {
  const entries = [["found", "matched"], ["lost", "no counterpart"], ["uncounted", "not counted by CDM"]];
  return make("p", { class: "legend drawn-legend" }, ...entries.map(([kind, text]) => make("span", { class: "legend-step" },
    make("span", { class: `ink-swatch ${kind}` }), text)));
}
