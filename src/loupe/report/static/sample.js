// The page of one sample: its pictures, its numbers, and one pane per engine beside the reference.

/** What match.js brings, where any score is explained. */
let matchView = null;
const hasMatch = (payload) => Boolean(matchView && payload?.page && payload.matches.some(Boolean));
/** What facts.js brings, where answers were put to tests. */
let factView = null;
const hasFacts = (payload) => Boolean(factView && payload?.answers.some((answer) => answer?.tests));
/** What fields.js brings, where documents were asked for fields. */
let fieldView = null;
const hasFields = (payload) => Boolean(fieldView && payload?.answers.some((answer) => answer?.fields?.length));
/** What layout.js brings, where engines tell where they saw the parts of a page. */
let layoutView = null;
const hasLayout = (payload) => Boolean(layoutView && payload?.answers.some((answer) => answer?.layout));
const view = { sample: null, mode: "rendered", chosen: "", unit: "words", payload: null };

/** `wanted` is [engine, number] of the test to go to, if any. */
async function openSample(sample, wanted = null) {
  view.sample = sample;
  const payload = await payloadOf(sample);
  if (view.sample !== sample) return;
  view.payload = payload;
  matchView?.hide();
  // The match is what explains the score, so it is shown first, until somebody chooses otherwise.
  if (hasMatch(payload) && !view.chosen) view.mode = "match";
  if (hasFields(payload) && !view.chosen) view.mode = "fields";
  if (hasFacts(payload) && (wanted || !view.chosen)) view.mode = "tests";
  const page = fromTemplate("sample-template");
  fillHead(page, sample);
  page.querySelector(".sample-pictures").append(...pictures(payload, sample));
  fillContext(page, payload);
  page.querySelector(".sample-numbers").append(...numbers(payload, sample));
  for (const button of page.querySelectorAll("[data-mode]")) {
    button.addEventListener("click", () => { view.mode = view.chosen = button.dataset.mode; drawPanes(); });
  }
  for (const button of page.querySelectorAll("[data-unit]")) {
    button.addEventListener("click", () => { view.unit = button.dataset.unit; drawPanes(); });
  }
  document.getElementById("sample").replaceChildren(page);
  drawPanes();
  if (wanted && view.mode === "tests") factView.goTo(...wanted);
  document.title = `${sample.id} · Loupe`;
}

function fillHead(page, sample) {
  const { place, count, ...beside } = neighbours(sample);
  page.querySelector(".sample-name").append(make("bdi", {}, sample.id));
  const tags = Object.entries(sample.tags).map(([tag, value]) => make("span", { class: "pill" },
    make("span", { class: "pill-name" }, tag), make("bdi", {}, value)));
  page.querySelector(".sample-tags").append(...tags);
  page.querySelector(".sample-place").textContent = place < 0 ? "" : `${(place + 1).toLocaleString("en")} of ${count.toLocaleString("en")}`;
  Object.assign(page.querySelector(".back"), { href: LISTED_AT, textContent: `← ${LISTED_AS}` });
  for (const name of ["previous", "next"]) {
    const anchor = page.querySelector(`.sample-${name}`);
    if (beside[name]) anchor.href = beside[name]; else anchor.setAttribute("aria-disabled", "true");
  }
}

function fillContext(page, payload) {
  const context = page.querySelector(".sample-context");
  if (payload.notice) context.append(notice(payload.notice));
  if (payload.prompt) context.append(make("h3", {}, "Question"), textBlock(payload.prompt));
  if (payload.input) context.append(make("h3", {}, "Input text"), textBlock(payload.input));
}

function pictures(payload, sample) {
  if (!payload.pictures.length) {
    const why = sample.group.note ? "The image is missing: the data was not found." : "This sample has no image.";
    return [make("p", { class: "notice" }, why)];
  }
  return payload.pictures.map((picture, place) => {
    const figure = make("figure", {});
    if (picture.src) {
      const image = make("img", { src: picture.src, alt: `page image of ${sample.id}` });
      const button = make("button", { type: "button", class: "zoom", title: "Enlarge (z)" }, image);
      button.addEventListener("click", () => zoom(picture.src));
      image.addEventListener("error", () => {
        const small = place === 0 ? thumbnailOf(sample) : "";
        const note = notice(`The full image was not found beside this file (${picture.name}). "loupe report --embed" includes it.`);
        if (small && image.src !== small) image.src = small; else button.remove();
        figure.append(note);
      }, { once: true });
      figure.append(button);
    } else if (picture.error) {
      figure.append(notice(picture.error));
    }
    figure.append(make("figcaption", {}, make("bdi", {}, picture.name)));
    return figure;
  });
}

function zoom(source) {
  const dialog = document.getElementById("zoom");
  dialog.querySelector("img").src = source;
  dialog.querySelector(".overlay")?.remove();
  const drawing = view.mode === "match" && document.querySelector("#sample .overlay");
  if (drawing) dialog.querySelector(".zoom-frame").append(drawing.cloneNode(true));
  dialog.showModal();
}

/** All numbers of the sample: a table of measures and what is known about each answer, engines as columns. */
function numbers(payload, sample) {
  const labels = sample.group.engines;
  const head = make("tr", {}, make("th", { scope: "col" }, ""), ...labels.map((label) => make("th", { scope: "col" }, make("bdi", {}, label))));
  const body = make("tbody", {});
  const line = (name, cells, kind = "") => {
    if (cells.some((cell) => cell !== "")) {
      body.append(make("tr", { class: kind }, make("th", { scope: "row" }, ...[name].flat()), ...cells.map((cell, place) => {
        const element = cell instanceof Node ? cell : make("td", {}, cell);
        element.dataset.of = labels[place];
        return element;
      })));
    }
  };
  line("answer", sample.engines.map((engine) => make("td", { class: FAILED.has(engine.outcome) ? "failed" : "" }, OUTCOMES[engine.outcome])));
  for (const measure of sample.group.measures) {
    const cells = payload.answers.map((answer) => {
      const found = answer && answer.values.find((value) => value.name === measure.name);
      if (!found) return "";
      const good = measure.unit === "fraction" ? goodness(found.value, measure, 1) : null;
      return make("td", { class: good === null ? "" : "scored" }, good === null ? "" : make("span", { class: `swatch q${stepOf(good)}` }), found.text);
    });
    line([make("span", { title: measure.name }, measure.title), measure.higher ? " ↑" : " ↓"], cells, "measure");
  }
  const known = [...new Set(payload.answers.flatMap((answer) => (answer ? [...answer.facts, ...answer.diagnostics].map(([name]) => name) : [])))];
  for (const name of known) {
    line(name, payload.answers.map((answer) => (answer && ([...answer.facts, ...answer.diagnostics].find(([key]) => key === name) || [])[1]) || ""));
  }
  const table = make("div", { class: "table-scroll" }, make("table", { class: labels.length > 1 ? "numbers stack" : "numbers" }, make("thead", {}, head), body));
  return [table, ...unitTables(payload, sample)];
}

function unitTables(payload, sample) {
  return payload.answers.flatMap((answer, place) => {
    if (!answer || answer.units.length === 0) return [];
    const rows = answer.units.map((unit) => make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, unit.unit)),
      make("td", {}, unit.measure), make("td", {}, unit.value)));
    const more = answer.hiddenUnits ? [notice(`${answer.hiddenUnits} more are in scores.jsonl.`)] : [];
    const title = `${answer.units.length + answer.hiddenUnits} single measurements of ${sample.group.engines[place]}`;
    return [make("details", {}, make("summary", {}, title), make("div", { class: "table-scroll" },
      make("table", { class: "numbers" }, make("tbody", {}, ...rows))), ...more)];
  });
}

function mode(name) {
  if (!view.sample || !view.payload) return;
  view.mode = view.chosen = name;
  drawPanes();
}

/** Keys of a sample, the same wherever it is shown. */
const SAMPLE_KEYS = {
  1: () => mode("rendered"),
  2: () => mode("difference"),
  3: () => mode("raw"),
  4: () => { if (hasMatch(view.payload)) mode("match"); },
  5: () => { if (hasFacts(view.payload)) mode("tests"); },
  6: () => { if (hasFields(view.payload)) mode("fields"); },
  7: () => { if (hasLayout(view.payload)) mode("layout"); },
  z: () => { const picture = view.payload?.pictures.find((candidate) => candidate.src); if (view.sample && picture) zoom(picture.src); },
};

function drawPanes() {
  const { payload, sample } = view;
  const page = document.getElementById("sample");
  const fielded = hasFields(payload), comparable = payload.reference !== null && !fielded;
  const explained = hasMatch(payload);
  // The texts of two JSON objects differ in much that costs nothing: their difference is the table of fields.
  if (fielded && view.mode === "difference") view.mode = "fields";
  if ((view.mode === "difference" && !comparable) || (view.mode === "match" && !explained) || (view.mode === "tests" && !hasFacts(payload)) || (view.mode === "fields" && !fielded) || (view.mode === "layout" && !hasLayout(payload))) view.mode = "rendered";
  page.querySelector("[data-mode=fields]").hidden = !fielded;
  page.querySelector("[data-mode=difference]").hidden = fielded;
  page.querySelector("[data-mode=match]").hidden = !explained;
  page.querySelector("[data-mode=tests]").hidden = !hasFacts(payload);
  page.querySelector("[data-mode=layout]").hidden = !hasLayout(payload);
  page.querySelector(".sample-body").classList.toggle("testing", view.mode === "tests");
  page.querySelector(".sample-body").classList.toggle("laid-out", view.mode === "layout");
  for (const button of page.querySelectorAll("[data-mode]")) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === view.mode));
    button.disabled = button.dataset.mode === "difference" && !comparable;
  }
  for (const button of page.querySelectorAll("[data-unit]")) button.setAttribute("aria-pressed", String(button.dataset.unit === view.unit));
  page.querySelector(".by-unit").hidden = view.mode !== "difference";
  const wasMatching = page.querySelector(".sample-body").classList.toggle("matching", view.mode === "match") === false && page.querySelector(".overlay");
  matchView?.hide();
  if (wasMatching) page.querySelector(".sample-pictures").replaceChildren(...pictures(payload, sample));
  if (view.mode === "match") { matchView.draw(); return; }
  if (view.mode === "layout") { layoutView.draw(); return; }
  if (view.mode === "tests") { factView.draw(); return; }
  if (view.mode === "fields") { page.querySelector(".panes").replaceChildren(fieldView.table(payload, sample)); return; }
  const panes = payload.answers.map((answer, place) => {
    const element = answerPane(answer, sample.group.engines[place], sample.engines[place].outcome, hasFullMarks(answer, sample.engines[place]));
    element.querySelector(".pane-title").append(paneScore(sample.engines[place]));
    return element;
  });
  if (view.mode !== "difference") panes.unshift(referencePane(payload.reference, sample));
  const tabular = [payload.reference, ...payload.answers].some((text) => text?.html?.includes("<table"));
  page.querySelector(".panes").classList.toggle("wide", tabular && view.mode === "rendered");
  page.querySelector(".panes").classList.toggle("whole", view.mode === "difference");
  page.querySelector(".panes").replaceChildren(...panes);
}

/** Arrow keys go through the blocks of a match or the tests of a page, wherever the focus was before. */
function stepThroughRows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const list = document.querySelector("#sample .rows");
  if (!step || !list || event.target.closest("input, select, textarea, summary, .text, .table-scroll")) return;
  const rows = [...list.querySelectorAll("[data-unit], [data-unscored], [data-fact]")].filter((row) => row.tabIndex === 0 && row.offsetParent !== null);
  const at = rows.indexOf(document.activeElement.closest?.(".unit, .fact"));
  const next = at < 0 ? rows[step > 0 ? 0 : rows.length - 1] : rows[at + step];
  if (!next) return;
  event.preventDefault();
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function pane(title, kind, ...content) {
  const element = fromTemplate("pane-template");
  element.classList.add(kind);
  element.querySelector(".pane-title").append(make("bdi", {}, title));
  element.querySelector(".pane-body").append(...content);
  return element;
}

function referencePane(reference, sample) {
  if (reference === null) {
    return pane("Reference", "reference", notice(sample.group.note ? "The reference is missing: the data was not found." : "This sample has no reference text."));
  }
  return pane("Reference", "reference", ...(view.mode === "raw" ? [textBlock(reference.text, { ...reference, kind: "raw" })] : rendered(reference)));
}

/** The value that ranks this answer, beside its engine's name. */
function paneScore(engine) {
  if (engine.value === null || !engine.measure) return "";
  const step = engine.good === null ? "q-none" : `q${stepOf(engine.good)}`;
  const unit = engine.measure.unit === "fraction" ? " %" : "";
  return make("span", { class: "pane-score" }, make("span", { class: `swatch ${step}` }),
    make("span", { class: "measure-name" }, engine.measure.title), formatValue(engine.value, engine.measure) + unit);
}

/** Whether the value that ranks the answer is a perfect one. */
function hasFullMarks(answer, { measure }) {
  const value = answer?.values.find((candidate) => candidate.name === measure?.name)?.value;
  return measure?.unit === "fraction" && value === (measure.higher ? 1 : 0);
}

function answerPane(answer, label, outcome, full = false) {
  if (!answer && NOT_READ.has(outcome)) return pane(label, "answer", notice(`${capital(OUTCOMES[outcome])}.`));
  if (!answer) return pane(label, "failed", failureBox("no answer", "This run has no answer for this sample; it scores as an empty one."));
  const content = [];
  if (answer.failed) content.push(failureBox(OUTCOMES[answer.outcome], answer.error || "No message.", "Scored as an empty answer."));
  if (answer.scoringError) content.push(failureBox(OUTCOMES.scorer, answer.scoringError));
  if (!answer.failed && answer.outcome !== "ok") content.push(notice(`${capital(OUTCOMES[answer.outcome])}${answer.error ? `: ${answer.error}` : "."}`));
  if (!answer.failed || answer.text) content.push(...answerText(answer, full));
  if (answer.reasoning && view.mode === "raw") {
    content.push(make("details", {}, make("summary", {}, "Reasoning"), textBlock(answer.reasoning, { kind: "raw" })));
  }
  return pane(label, answer.failed ? "failed" : "answer", ...content);
}

function answerText(answer, full) {
  if (view.mode === "difference") return [differenceBlock(answer.text, view.payload.reference.text, view.unit, full)];
  if (view.mode === "rendered") return rendered(answer);
  const note = answer.raw === undefined ? [] : [notice(`As the engine gave it. Scored after: ${answer.adapters.join(", ")}.`)];
  return [...note, textBlock(answer.raw ?? answer.text, { hidden: answer.hidden, kind: "raw" })];
}

/** A text as a reader would see it. The HTML was sanitised when the report was written; the page's CSP stands behind it. */
function rendered(shown) {
  if (shown.html === undefined) return [textBlock(shown.text, shown)];
  if (shown.html.trim() === "") {
    const why = shown.notice || (shown.text.trim() ? "This text renders as nothing; the source text is shown." : "");
    return [...(why ? [notice(why)] : []), textBlock(shown.text, shown)];
  }
  const block = make("div", { class: "text markup", dir: "auto" });
  block.innerHTML = shown.html;
  showHidden(block);
  breakLongWords(block);
  return [...(shown.notice ? [notice(shown.notice)] : []), block];
}

function failureBox(title, ...lines) {
  return make("div", { class: "failure" }, make("strong", {}, capital(title)), ...lines.map((text) => make("p", {}, ...visibleText(text))));
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
