// The page image: how large, where, and with which marks. Larger pictures are fetched only when they are needed.

const view = document.getElementById("page-view");
const frame = document.getElementById("page-frame");
const sheet = document.getElementById("page-sheet");
const image = document.getElementById("page-image");
const source = document.getElementById("page-source");
const marks = document.getElementById("page-marks");
const problem = document.getElementById("page-problem");
const sizes = JSON.parse(document.documentElement.dataset.sizes);
const STEPS = [0.05, 0.1, 0.15, 0.2, 0.25, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
const SVG = "http://www.w3.org/2000/svg";

const state = { target: null, size: null, picture: null, fit: "page", zoom: 1, ratio: 0, longest: 0, marked: true, places: {}, pages: [], leaf: 0 };
/** Quarters by which a picture is turned: a scan that lies on its side does so every time. */
const turns = new Map();
const turned = () => turns.get(state.picture) || 0;
/** Width by height, as it is seen. */
const ratio = () => (turned() % 2 ? 1 / state.ratio : state.ratio);

let told = () => {}, onDrawing = () => {};
/** Pictures under way: the one to be shown, and one that is likely to be next. */
let pending = null, ahead = null;

/** Whether the page is still being drawn: nobody has seen it. */
export const isDrawing = () => document.documentElement.hasAttribute("data-drawing");

function setDrawing(drawing) {
  document.documentElement.toggleAttribute("data-drawing", drawing);
  onDrawing();
}

/** Show the pages of an entry, the first one unless the same pages are open; `onLeaf` hears which picture it is. */
export function showPage(entry, onLeaf = () => {}) {
  const same = entry.pages.length > 0 && entry.pages.length === state.pages.length
    && entry.pages.every((page, place) => page.picture === state.pages[place].picture);
  told = onLeaf;
  state.pages = entry.pages;
  source.hidden = !entry.source;
  source.textContent = entry.source;
  openLeaf(same ? state.leaf : 0, entry.source ? "" : "This line has no page.");
}

function openLeaf(leaf, without = "") {
  const page = state.pages[leaf], count = state.pages.length;
  const name = document.getElementById("page-name");
  state.leaf = leaf;
  document.getElementById("leafs").hidden = count < 2;
  document.getElementById("leaf-value").textContent = `${leaf + 1} of ${count}`;
  document.getElementById("leaf-back").disabled = leaf === 0;
  document.getElementById("leaf-on").disabled = leaf >= count - 1;
  name.textContent = page?.document ? `${page.document}${page.page ? `, page ${page.page}` : ""}` : "";
  name.title = page?.document || "";
  told(page?.picture ?? null);
  if (!page || page.problem) {
    say(page ? page.problem : without);
    state.picture = null;
    return;
  }
  if (page.picture === state.picture) return;
  setDrawing(true);
  Object.assign(state, { picture: page.picture, size: null, ratio: 0, longest: 0 });
  frame.hidden = true;
  problem.hidden = false;
  problem.textContent = "Rendering the page…";
  image.alt = page.page ? `Page ${page.page} of ${page.document}` : page.document;
  fetchPicture(sizes[1]);
  if (leaf + 1 < count && !state.pages[leaf + 1].problem) prepare(state.pages[leaf + 1].picture);
}

/** The next page of the entry, or the one before. */
export function turnLeaf(step) {
  const leaf = state.leaf + step;
  if (leaf >= 0 && leaf < state.pages.length) openLeaf(leaf);
}

/** Turn the page by a quarter, clockwise; one that is still being drawn appears turned. */
export function turn() {
  if (state.picture === null) return;
  // As wide as it was high: what is enlarged stays as large.
  if (state.fit === "zoom" && state.ratio) state.zoom /= ratio();
  turns.set(state.picture, (turned() + 1) % 4);
  layOut();
}

/** Have a page ready that is likely to be next. */
export function prepare(picture) {
  if (!/^\d+$/.test(picture ?? "") || Number(picture) === state.picture) return;
  const address = `/page/${picture}?longest=${sizes[1]}`;
  if (ahead?.getAttribute("src") === address) return;
  ahead?.removeAttribute("src");
  ahead = Object.assign(new Image(), { src: address });
}

function say(text) {
  frame.hidden = true;
  image.removeAttribute("src");
  problem.textContent = text;
  problem.hidden = !text;
  setDrawing(false);
}

function fetchPicture(longest) {
  const picture = state.picture, next = new Image();
  // What was asked for before is not wanted any more, and must not stand in the way of this.
  pending?.removeAttribute("src");
  pending = next;
  state.longest = longest;
  next.addEventListener("load", () => {
    if (state.picture !== picture || state.longest !== longest) return;
    const isNew = !state.ratio;
    state.ratio = next.naturalWidth / next.naturalHeight;
    image.src = next.src;
    frame.hidden = false;
    problem.hidden = true;
    layOut();
    if (isNew) { view.scrollTo(0, 0); drawMarks(); }
    image.dataset.picture = picture;
    setDrawing(false);
  });
  next.addEventListener("error", () => { if (state.picture === picture && !state.ratio) explain(picture, longest); });
  next.src = `/page/${picture}?longest=${longest}`;
}

async function explain(picture, longest) {
  let text = "The page cannot be shown.";
  try { text = (await (await fetch(`/page/${picture}?longest=${longest}`)).json()).message || text; } catch { /* as above */ }
  if (state.picture === picture) say(text);
}

const room = () => ({ width: Math.max(80, view.clientWidth - 32), height: Math.max(80, view.clientHeight - 32) });

function widthAt() {
  const { width, height } = room();
  if (state.fit === "page") return Math.min(width, height * ratio());
  return state.fit === "width" ? width : width * state.zoom;
}

function layOut() {
  if (!state.ratio) return;
  const width = Math.round(widthAt());
  frame.style.width = `${width}px`;
  const height = Math.round(width / ratio()), quarter = turned();
  frame.style.height = `${height}px`;
  sheet.style.width = `${quarter % 2 ? height : width}px`;
  sheet.style.height = `${quarter % 2 ? width : height}px`;
  sheet.style.transform = ["", `translate(${width}px) rotate(90deg)`, `translate(${width}px, ${height}px) rotate(180deg)`, `translate(0, ${height}px) rotate(270deg)`][quarter];
  sayZoom(width);
  const needed = Math.max(width, height) * Math.min(2, window.devicePixelRatio || 1);
  const wanted = sizes.find((size) => size >= needed * 0.9) || sizes.at(-1);
  if (wanted > state.longest && state.longest) fetchPicture(wanted);
}

/** What the picture has in pixels across, as it is seen; 0 while nobody knows. */
const pixels = () => (state.size ? state.size[turned() % 2] : 0);

function sayZoom(width) {
  const value = document.getElementById("zoom-value"), percent = pixels() ? `${Math.round((100 * width) / pixels())}%` : "";
  value.textContent = state.fit === "zoom" ? percent || "…" : "fit";
  value.title = percent ? `${state.fit === "zoom" ? "" : `fits the pane: `}${percent} of the picture's ${state.size[0]} × ${state.size[1]} pixels` : "";
}

/** How large the picture is that is cut down to what is seen. */
export function showSize(size) {
  state.size = size;
  layOut();
}

/** Zoom to a share of the pane's width, keeping the point in the middle (or the given one) where it is. */
function zoomTo(zoom, x = view.clientWidth / 2, y = view.clientHeight / 2) {
  if (!state.ratio) return;
  const before = frame.getBoundingClientRect(), pane = view.getBoundingClientRect();
  const across = (pane.left + x - before.left) / before.width, down = (pane.top + y - before.top) / before.height;
  state.fit = "zoom";
  state.zoom = Math.min(6, Math.max(0.2, zoom));
  layOut();
  const after = frame.getBoundingClientRect();
  view.scrollBy(after.left + across * after.width - pane.left - x, after.top + down * after.height - pane.top - y);
}

const share = () => widthAt() / room().width;

/** To the next round percentage of the picture's pixels. */
function zoomBy(find) {
  const whole = (pixels() || room().width) / room().width, now = share() / whole;
  zoomTo(whole * find(now));
}
export function zoomIn() { zoomBy((now) => STEPS.find((step) => step > now * 1.02) || now * 1.25); }
export function zoomOut() { zoomBy((now) => STEPS.findLast((step) => step < now * 0.98) || now * 0.8); }
export function fit(how) { state.fit = how; layOut(); }
export function pan(across, down) { view.scrollBy({ left: across * 80, top: down * 80 }); }
export function screenful(step) { view.scrollBy({ top: step * view.clientHeight * 0.85, behavior: "smooth" }); }

/** Where the texts of the entry stand, by field; the first text decides what is scrolled to. */
export function showMarks(places) {
  state.places = places;
  document.getElementById("marks-switch").hidden = !Object.keys(places).length;
  drawMarks();
}

function drawMarks() {
  marks.replaceChildren();
  state.target = null;
  if (!state.marked || !state.ratio) return;
  let target = null;
  for (const [name, found] of Object.entries(state.places)) {
    for (const boxes of found) for (const [left, top, right, bottom] of boxes) {
      const box = document.createElementNS(SVG, "rect");
      const pad = 0.0025;
      box.setAttribute("x", left - pad);
      box.setAttribute("y", top - pad);
      box.setAttribute("width", right - left + 2 * pad);
      box.setAttribute("height", bottom - top + 2 * pad);
      box.setAttribute("class", `mark-box of-${name}`);
      marks.append(box);
      target ||= { left, top, right, bottom };
    }
  }
  for (const field of document.querySelectorAll("#form .field")) field.classList.toggle("found", field.dataset.field in state.places);
  state.target = target;
  if (target && state.fit !== "page") bringIntoView(target);
}

/** The first mark, or the middle of what is seen, large enough to read; and back. */
export function closeUp() {
  if (!state.ratio) return;
  if (state.fit === "zoom") { fit("page"); return; }
  zoomTo(Math.max(1.5, share() * 1.8));
  if (state.target) bringIntoView(state.target, true);
}

/** A box of the sheet as it lies on the turned page. */
function onPage({ left, top, right, bottom }) {
  return [{ left, top, right, bottom }, { left: 1 - bottom, top: left, right: 1 - top, bottom: right },
    { left: 1 - right, top: 1 - bottom, right: 1 - left, bottom: 1 - top }, { left: top, top: 1 - right, right: bottom, bottom: 1 - left }][turned()];
}

function bringIntoView(target, centred = false) {
  const box = onPage(target);
  const place = frame.getBoundingClientRect(), pane = view.getBoundingClientRect();
  const top = place.top + box.top * place.height - pane.top, bottom = place.top + box.bottom * place.height - pane.top;
  const left = place.left + box.left * place.width - pane.left, right = place.left + box.right * place.width - pane.left;
  if (centred || top < 0 || bottom > pane.height) view.scrollBy(0, (top + bottom) / 2 - pane.height / 2);
  if (centred || left < 0 || right > pane.width) view.scrollBy((left + right) / 2 - pane.width / 2, 0);
}

export function switchMarks() {
  state.marked = !state.marked;
  document.getElementById("marks-switch").setAttribute("aria-pressed", String(state.marked));
  drawMarks();
}

/** `drawing` is called whenever a page begins to be drawn, is there, or cannot be. */
export function startViewer(drawing) {
  onDrawing = drawing;
  new ResizeObserver(layOut).observe(view);
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const pane = view.getBoundingClientRect();
    zoomTo(share() * Math.exp(-event.deltaY / 300), event.clientX - pane.left, event.clientY - pane.top);
  }, { passive: false });
  image.addEventListener("dblclick", (event) => {
    const pane = view.getBoundingClientRect();
    if (state.fit === "page") zoomTo(Math.max(1.5, share() * 2), event.clientX - pane.left, event.clientY - pane.top);
    else fit("page");
  });
  let grip = null;
  frame.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    grip = { x: event.clientX + view.scrollLeft, y: event.clientY + view.scrollTop };
    frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener("pointermove", (event) => { if (grip) view.scrollTo(grip.x - event.clientX, grip.y - event.clientY); });
  for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, () => { grip = null; });
  image.addEventListener("dragstart", (event) => event.preventDefault());
  document.getElementById("zoom-in").addEventListener("click", zoomIn);
  document.getElementById("zoom-out").addEventListener("click", zoomOut);
  document.getElementById("zoom-width").addEventListener("click", () => fit("width"));
  document.getElementById("zoom-page").addEventListener("click", () => fit("page"));
  document.getElementById("turn").addEventListener("click", turn);
  document.getElementById("leaf-back").addEventListener("click", () => turnLeaf(-1));
  document.getElementById("leaf-on").addEventListener("click", () => turnLeaf(1));
  document.getElementById("marks-switch").addEventListener("click", switchMarks);
}
