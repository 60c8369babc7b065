// The page image: how large, where, and with which marks. Larger pictures are fetched only when they are needed.

const view = document.getElementById("page-view");
const frame = document.getElementById("page-frame");
const image = document.getElementById("page-image");
const marks = document.getElementById("page-marks");
const problem = document.getElementById("page-problem");
const sizes = JSON.parse(document.documentElement.dataset.sizes);
const STEPS = [0.25, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6];
const SVG = "http://www.w3.org/2000/svg";

const state = { target: null, picture: null, fit: "page", zoom: 1, ratio: 0, longest: 0, marked: true, places: {} };

export function showPage(entry) {
  const name = document.getElementById("page-name");
  name.textContent = entry.document ? `${entry.document}, page ${entry.page}` : "";
  name.title = entry.document;
  if (entry.picture_problem || entry.picture === null) {
    say(entry.picture_problem || "There is no page to this line.");
    state.picture = null;
    return;
  }
  if (entry.picture === state.picture) return;
  Object.assign(state, { picture: entry.picture, ratio: 0, longest: 0 });
  frame.hidden = true;
  problem.hidden = false;
  problem.textContent = "Drawing the page…";
  image.alt = `Page ${entry.page} of ${entry.document}`;
  fetchPicture(sizes[1]);
}

/** Have a page ready that is likely to be next. */
export function prepare(picture) {
  if (/^\d+$/.test(picture || "") && Number(picture) !== state.picture) new Image().src = `/page/${picture}?longest=${sizes[1]}`;
}

function say(text) {
  frame.hidden = true;
  image.removeAttribute("src");
  problem.textContent = text;
  problem.hidden = false;
}

function fetchPicture(longest) {
  const picture = state.picture, next = new Image();
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
  if (state.fit === "page") return Math.min(width, height * state.ratio);
  return state.fit === "width" ? width : width * state.zoom;
}

function layOut() {
  if (!state.ratio) return;
  const width = Math.round(widthAt());
  frame.style.width = `${width}px`;
  frame.style.height = `${Math.round(width / state.ratio)}px`;
  document.getElementById("zoom-value").textContent = `${Math.round((100 * width) / room().width)}%`;
  const needed = Math.max(width, width / state.ratio) * Math.min(2, window.devicePixelRatio || 1);
  const wanted = sizes.find((size) => size >= needed * 0.9) || sizes.at(-1);
  if (wanted > state.longest && state.longest) fetchPicture(wanted);
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

export function zoomIn() { zoomTo(STEPS.find((step) => step > share() * 1.02) || 6); }
export function zoomOut() { zoomTo(STEPS.findLast((step) => step < share() * 0.98) || 0.2); }
export function fit(how) { state.fit = how; layOut(); }
export function pan(across, down) { view.scrollBy({ left: across * 80, top: down * 80 }); }
export function screenful(step) { view.scrollBy({ top: step * view.clientHeight * 0.85, behavior: "smooth" }); }

/** Where the texts of the entry stand, by field; the first text decides what is scrolled to. */
export function showMarks(places) {
  state.places = places;
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

function bringIntoView(box, centred = false) {
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

export function startViewer() {
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
  document.getElementById("marks-switch").addEventListener("click", switchMarks);
}
