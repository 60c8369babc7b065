// The review: which entry is open, what a key does, and that nothing is lost or overwritten unseen.

import { get, post, Refused, Unreachable } from "./server.js";
import * as list from "./list.js";
import * as viewer from "./viewer.js";
import * as form from "./form.js";
import * as drafts from "./drafts.js";
import { isNarrow, startKeys } from "./keys.js";
import { endComplaint, finished, showConflict, showCounts, toast, trouble } from "./say.js";
import { startTheme, switchTheme } from "./theme.js";
import { startWatching } from "./watch.js";

const root = document.documentElement;
const byId = (name) => document.getElementById(name);
const noun = root.dataset.noun;
let entry = byId("entry") ? JSON.parse(byId("entry").textContent) : null;
let state = JSON.parse(byId("state").textContent);
let queue = Promise.resolve();
let saving = 0, opening = 0, busy = false, asked = 0, picture = null, typingTimer = 0, waiting = null;

function showState(data) {
  state = { revision: data.revision, counts: data.counts, undo: data.undo, locked: data.locked };
  showCounts(state);
  lockButtons();
}

function lockButtons() {
  const locked = !entry || entry.broken || Boolean(state.locked);
  // Nobody can say that a page is right before it is there.
  byId("verify").disabled = locked || viewer.isDrawing();
  byId("reject").disabled = locked;
}

const said = (status) => (status === "rejected" ? root.dataset.refused : status);

// --- opening an entry ---

function show(next, { keepFocus = false } = {}) {
  entry = next;
  byId("head").innerHTML = entry.head;
  const restored = form.showForm(entry.form, entry);
  byId("conflict").hidden = true;
  settleOn({ restored });
  if (!keepFocus && document.activeElement?.closest("#form")) document.activeElement.blur();
}

function settleOn({ restored }) {
  asked = 0;
  endComplaint();
  root.toggleAttribute("data-wide", Boolean(byId("form").querySelector(".field.prose, .field.markdown, .field.table")));
  viewer.showPage(entry, findMarks);
  drafts.show(entry);
  history.replaceState(null, "", list.address(entry.number));
  document.title = `${entry.id || `line ${entry.number}`} · ${byId("head").closest("body").querySelector(".file").textContent}`;
  list.applyFilter(entry.number);
  list.markCurrent(entry.number);
  lockButtons();
  byId("verify").setAttribute("aria-pressed", String(entry.status === "verified"));
  byId("reject").setAttribute("aria-pressed", String(entry.status === "rejected"));
  byId("detail").scrollTop = 0;
  root.dataset.line = entry.number;
  if (restored) toast("Your unsaved edit is back; Enter saves it, Esc leaves it.");
  viewer.prepare(list.neighbour(entry.number, 1, list.isOpen)?.dataset.picture);
}

/** Where the texts of the entry stand on the page that is seen. */
async function findMarks(seen = picture) {
  const number = entry.number;
  picture = seen;
  viewer.showMarks({});
  if (picture === null) return;
  try {
    const { marks } = await get(`/marks/${number}?picture=${seen}`);
    if (entry.number === number && picture === seen) viewer.showMarks(marks);
  } catch { /* Marks are a help; without them the page is still there. */ }
}

async function open(number, { id = "" } = {}) {
  const turn = ++opening;
  if (!(await flush())) return false;
  try {
    const next = await get(`/entry/${number}${id ? `?id=${encodeURIComponent(id)}` : ""}`);
    if (turn !== opening) return false;
    show(next);
    return true;
  } catch (error) {
    report(error);
    if (error instanceof Refused && error.status === 404) await reloadList();
    return false;
  }
}

const openRow = (found) => (found ? open(Number(found.dataset.number)) : Promise.resolve(false));

async function reloadList() {
  const data = await get("/list");
  list.replaceList(data.list);
  showState(data);
  if (entry) { list.applyFilter(entry.number); list.markCurrent(entry.number); }
}

// --- saving ---

/** Changes go one after the other: each names what the line looked like after the one before. */
function change(status = null, options = {}) {
  clearTimeout(typingTimer);
  // Leaving a field with Enter asks twice; what has not been sent yet takes the second wish along.
  if (!status && !options.typing && waiting) return waiting;
  const done = queue.then(() => {
    waiting = null;
    return send(status, options);
  });
  if (!status && !options.typing) waiting = done;
  queue = done.catch(() => {});
  return done;
}

async function send(status, { typing = false } = {}) {
  const fields = form.edits();
  if (!status && !Object.keys(fields).length) return true;
  if (state.locked) { toast(`Nothing can be saved: ${state.locked}`, "bad"); return false; }
  const confirmed = asked === entry.number;
  saving += 1;
  try {
    const data = await post("/change", { number: entry.number, seen: entry.seen, status, fields, known: state.revision, typing, confirmed });
    accept(data, fields);
    return true;
  } catch (error) {
    // What is half typed may well be refused; it is kept in the tab, and the person is still at it.
    if (typing && error instanceof Refused && error.status === 422) return false;
    if (error instanceof Refused && error.status === 409) await conflict(status);
    else report(error);
    return false;
  } finally {
    saving -= 1;
  }
}

function accept(data, fields) {
  const moved = data.entry.number !== entry.number || String(data.entry.pages.map((page) => page.picture)) !== String(entry.pages.map((page) => page.picture));
  entry = data.entry;
  byId("head").innerHTML = entry.head;
  byId("conflict").hidden = true;
  form.settle(entry.seen, fields);
  form.clearProblem();
  endComplaint();
  showState(data);
  trouble("");
  list.replaceRow(entry.number, data.row);
  if (moved) viewer.showPage(entry, findMarks);
  drafts.show(entry);
  byId("verify").setAttribute("aria-pressed", String(entry.status === "verified"));
  byId("reject").setAttribute("aria-pressed", String(entry.status === "rejected"));
  if (!data.alone) reloadList();
  else { list.applyFilter(entry.number); list.markCurrent(entry.number); }
  if (Object.keys(fields).length) findMarks();
  if (form.isDirty()) saveSoon();
}

/** Save what is typed, if anything is; whether one may go on. Where nothing can be saved the tab keeps it. */
function flush() { return form.isDirty() && !state.locked ? change() : queue.then(() => true); }

/** One decision at a time: a key that comes before the next entry is seen was not meant for it. */
async function decide(status) {
  if (!entry || entry.broken || busy || (status === "rejected" && !root.dataset.refused)) return;
  if (status === "verified" && viewer.isDrawing()) { toast("The page is still being drawn; nothing was decided."); return; }
  busy = true;
  try { await decideNow(status); } finally { busy = false; }
}

async function decideNow(status) {
  const from = entry.number, id = entry.id;
  const next = list.neighbour(from, 1, list.isOpen, { round: true });
  const target = next ? Number(next.dataset.number) : 0;
  if (!(await change(status))) return;
  toast(`${id}: ${said(status)}`);
  if (status === "unreviewed") return;
  if (target && target !== entry.number) await open(target);
  else finished(state.counts);
}

async function undo() {
  if (busy) return;
  busy = true;
  try {
    if (!(await flush())) return;
    const data = await post("/undo", { known: state.revision });
    toast(data.message);
    if (!data.entry) return;
    showState(data);
    list.replaceRow(data.entry.number, data.row);
    show(data.entry);
    if (!data.alone) await reloadList();
  } catch (error) {
    report(error);
    if (error instanceof Refused) await refresh();
  } finally {
    busy = false;
  }
}

// --- what goes wrong ---

function report(error) {
  if (error instanceof Unreachable) {
    trouble("Not saved: loupe review does not answer. What you typed is still here; start it again and open the address that it prints.");
  } else if (error instanceof Refused && error.status === 422) {
    if (error.data.ask) asked = entry.number;
    else form.showProblem(error.data.field, error.message);
    toast(`Not saved: ${error.message}`, "bad");
  } else {
    toast(`Not done: ${error.message}${error.data?.hint ? ` (${error.data.hint})` : ""}`, "bad");
    if (error instanceof Refused && error.status === 403) trouble(`Not saved: ${error.message}`);
  }
}

/** The line is another one by now: the person chooses. Nothing is thrown away meanwhile. */
async function conflict(status) {
  let theirs;
  try { theirs = await get(`/entry/${entry.number}?id=${encodeURIComponent(entry.id)}`); } catch { theirs = null; }
  if (!theirs || theirs.id !== entry.id) {
    showConflict(`this ${noun} is not in the file any more`, { "Go on": () => reloadList().then(() => openRow(list.first())) });
    return;
  }
  showConflict(`another tab or program has changed this ${noun} since you opened it`, {
    "Show what is there now": () => { form.settle(entry.seen); show(theirs); reloadList(); },
    "Save mine all the same": async () => {
      entry = { ...entry, seen: theirs.seen, number: theirs.number };
      if (await send(status)) { toast(`${entry.id}: yours is saved`); await reloadList(); }
    },
  });
}

/** Take in what other tabs and programs did. */
async function refresh() {
  await reloadList();
  if (!entry) return;
  const { number, seen } = entry;
  const theirs = await get(`/entry/${number}?id=${encodeURIComponent(entry.id)}`).catch(() => null);
  // A decision that was made meanwhile is newer than this answer.
  if (entry.number !== number || entry.seen !== seen || busy) return;
  if (!theirs || theirs.seen === entry.seen || saving) {
    if (theirs && theirs.number !== entry.number) { entry.number = theirs.number; settleOn({ restored: false }); }
    return;
  }
  if (form.isDirty()) { await conflict(null); return; }
  show(theirs, { keepFocus: true });
  toast(`This ${noun} was changed by another tab or program; it is shown as it is now.`);
}

// --- keys ---

const move = (step) => openRow(list.neighbour(entry.number, step));

async function nextOpen(step) {
  const next = list.neighbour(entry.number, step, list.isOpen, { round: true });
  if (next) await openRow(next);
  else if (await flush()) finished(state.counts);
}

function toFilter(name) {
  root.dataset.list = "open";
  byId("filters").elements[name].focus();
}

/** What is typed is in the file soon after, where nobody has decided yet: no crash costs more than a moment. */
function saveSoon() {
  clearTimeout(typingTimer);
  if (!root.dataset.savesTyping || !entry || entry.status !== "unreviewed" || state.locked) return;
  typingTimer = setTimeout(() => { if (form.isDirty() && !busy) change(null, { typing: true }); }, 900);
}

/** A draft of an engine, whole or in one field, becomes the truth. */
async function take(place, name = null) {
  if (!entry || busy || !drafts.take(entry, place, name)) return;
  if (await change()) toast(`Taken: what ${entry.drafts[place].engine} has${name ? ` in ${name}` : ""}`);
}

function digit(number) {
  if (entry.drafts.length) return take(number - 1);
  return form.chooseLabel(number - 1) ? change() : null;
}

async function differences(step) {
  if (form.stepDifferences(step)) await change();
}

const KEYS = {
  a: () => decide("verified"),
  [root.dataset.refuseKey]: () => decide("rejected"),
  c: () => decide("unreviewed"),
  e: form.focusFirst,
  u: undo,
  j: () => move(1), ArrowDown: () => move(1),
  k: () => move(-1), ArrowUp: () => move(-1),
  n: () => nextOpen(1),
  p: () => nextOpen(-1),
  d: () => openRow(list.nextGroup(entry.number)),
  "/": () => toFilter("q"),
  f: () => toFilter("status"),
  "+": viewer.zoomIn, "=": viewer.zoomIn,
  "-": viewer.zoomOut, "−": viewer.zoomOut,
  0: () => viewer.fit("page"),
  w: () => viewer.fit("width"),
  m: viewer.switchMarks,
  o: viewer.turn,
  ",": () => viewer.turnLeaf(-1),
  ".": () => viewer.turnLeaf(1),
  z: viewer.closeUp,
  l: () => {
    const isShown = root.dataset.list ? root.dataset.list === "open" : !isNarrow();
    root.dataset.list = isShown ? "closed" : "open";
  },
  t: switchTheme,
  "[": () => differences(-1),
  "]": () => differences(1),
  "?": () => byId("help").showModal(),
};

for (let number = 1; number < 10; number += 1) KEYS[number] = () => digit(number);

function start() {
  startTheme();
  showState(state);
  viewer.startViewer(lockButtons);
  list.filterFromAddress();
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  byId("undo").addEventListener("click", undo);
  byId("list-open").addEventListener("click", KEYS.l);
  byId("verify").addEventListener("click", () => decide("verified"));
  byId("reject").addEventListener("click", () => decide("rejected"));
  byId("skip").addEventListener("click", () => nextOpen(1));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("input", () => { list.applyFilter(entry?.number); if (entry) history.replaceState(null, "", list.address(entry.number)); });
  byId("filter-clear").addEventListener("click", () => { list.clearFilter(); list.applyFilter(entry?.number); });
  byId("list").addEventListener("click", (event) => {
    const found = event.target.closest(".row");
    if (!found || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (isNarrow()) root.dataset.list = "closed";
    openRow(found);
  });
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog || event.target.closest("[data-close]")) dialog.close(); });
  }
  startKeys({ keys: KEYS, save: flush, undo, take, first: () => openRow(list.neighbour(0, 1)), isOpen: () => entry !== null });
  addEventListener("beforeunload", (event) => { if (form.isDirty() || saving) event.preventDefault(); });
  if (entry) {
    byId("form").addEventListener("change", () => { change(); });
    byId("form").addEventListener("input", saveSoon);
    drafts.startDrafts(take);
    settleOn({ restored: form.startForm(entry) });
  } else {
    list.applyFilter(0);
    byId("actions").hidden = true;
  }
  startWatching(async ({ revision, locked }) => {
    if (locked !== state.locked) showState({ ...state, locked });
    if (revision > state.revision && !saving && byId("conflict").hidden) await refresh();
  });
  root.dataset.ready = "true";
}

start();
