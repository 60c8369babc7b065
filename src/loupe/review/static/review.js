// The review: which entry is open, what a key does, and that nothing is lost or overwritten unseen.

import { get, post, Refused, Unreachable } from "./server.js";
import * as list from "./list.js";
import * as viewer from "./viewer.js";
import * as form from "./form.js";

const root = document.documentElement;
const byId = (name) => document.getElementById(name);
const noun = root.dataset.noun;
const tab = tabName();
const POLL = 2000;
let entry = byId("head") ? JSON.parse(byId("head").dataset.entry) : null;
let state = JSON.parse(byId("state").textContent);
let queue = Promise.resolve();
let away = false, saving = 0, opening = 0;

function tabName() {
  const values = crypto.getRandomValues(new Uint32Array(3));
  return [...values].map((value) => value.toString(36)).join("");
}

// --- what the head of the page says ---

function showState(data) {
  state = { revision: data.revision, counts: data.counts, undo: data.undo };
  const { unreviewed, verified, rejected, broken } = state.counts;
  const all = unreviewed + verified + rejected, share = all ? 100 / all : 0;
  const [good, bad] = document.querySelectorAll(".meter rect");
  good.setAttribute("width", verified * share);
  bad.setAttribute("x", verified * share);
  bad.setAttribute("width", rejected * share);
  const percent = all ? Math.floor((100 * (verified + rejected)) / all) : 0;
  const [long, short] = byId("progress").children;
  short.textContent = `${verified + rejected} / ${all}`;
  long.textContent = `${verified + rejected} of ${all} reviewed, ${percent}%: ${verified} verified, ${rejected} rejected${broken ? `, ${broken} broken` : ""}`;
  byId("undo").disabled = !state.undo;
  byId("undo").title = state.undo ? `Undo (u): ${state.undo}` : "Nothing to undo";
}

let toastTimer = 0, pollTimer = 0;
function toast(text, kind = "") {
  const line = byId("toast");
  line.textContent = text;
  line.className = `toast shown ${kind}`;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { line.className = "toast"; }, kind === "bad" ? 8000 : 3500);
}

function trouble(text) {
  byId("trouble").textContent = text;
  byId("trouble").hidden = !text;
}

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
  viewer.showPage(entry);
  history.replaceState(null, "", list.address(entry.number));
  document.title = `${entry.id || `line ${entry.number}`} · ${byId("head").closest("body").querySelector(".file").textContent}`;
  list.applyFilter(entry.number);
  list.markCurrent(entry.number);
  const broken = entry.picture === null;
  for (const name of ["verify", "reject"]) byId(name).disabled = broken;
  byId("verify").setAttribute("aria-pressed", String(entry.status === "verified"));
  byId("reject").setAttribute("aria-pressed", String(entry.status === "rejected"));
  byId("detail").scrollTop = 0;
  root.dataset.line = entry.number;
  if (restored) toast("Your unsaved edit is back; Enter saves it, Esc leaves it.");
  if (broken) viewer.showMarks({});
  else findMarks();
  viewer.prepare(list.neighbour(entry.number, 1, list.isOpen)?.dataset.picture);
}

async function findMarks() {
  const asked = entry.number;
  viewer.showMarks({});
  try {
    const { marks } = await get(`/marks/${asked}`);
    if (entry.number === asked) viewer.showMarks(marks);
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
function change(status = null) {
  const done = queue.then(() => send(status));
  queue = done.catch(() => {});
  return done;
}

async function send(status, again = false) {
  const fields = form.edits();
  if (!status && !Object.keys(fields).length) return true;
  saving += 1;
  try {
    const data = await post("/change", { number: entry.number, seen: entry.seen, status, fields, known: state.revision });
    accept(data, fields);
    return true;
  } catch (error) {
    if (error instanceof Refused && error.status === 409 && !again) await conflict(error, status, fields);
    else report(error);
    return false;
  } finally {
    saving -= 1;
  }
}

function accept(data, fields) {
  const moved = data.entry.number !== entry.number || data.entry.picture !== entry.picture;
  entry = data.entry;
  byId("head").innerHTML = entry.head;
  byId("conflict").hidden = true;
  form.settle(entry.seen, fields);
  form.clearProblem();
  showState(data);
  away = false;
  trouble("");
  list.replaceRow(entry.number, data.row);
  if (moved) viewer.showPage(entry);
  byId("verify").setAttribute("aria-pressed", String(entry.status === "verified"));
  byId("reject").setAttribute("aria-pressed", String(entry.status === "rejected"));
  if (!data.alone) reloadList();
  else { list.applyFilter(entry.number); list.markCurrent(entry.number); }
  if (Object.keys(fields).length) findMarks();
}

/** Save what is typed, if anything is; whether one may go on. */
function flush() { return form.isDirty() ? change() : queue.then(() => true); }

async function decide(status) {
  if (!entry || entry.picture === null) return;
  const from = entry.number, id = entry.id;
  const next = list.neighbour(from, 1, list.isOpen, { round: true });
  const target = next ? Number(next.dataset.number) : 0;
  if (!(await change(status))) return;
  toast(`${id}: ${status}`);
  if (status === "unreviewed") return;
  if (target && target !== entry.number) await open(target);
  else finished();
}

function finished() {
  const { unreviewed, verified, rejected } = state.counts;
  if (unreviewed) { toast(`None left to review with this filter, ${unreviewed} in the file.`); return; }
  byId("finished-text").textContent = `${verified} verified, ${rejected} rejected. The file is saved; Ctrl-C in the terminal ends Loupe.`;
  byId("finished").showModal();
}

async function undo() {
  if (!(await flush())) return;
  try {
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
  }
}

// --- what goes wrong ---

function report(error) {
  if (error instanceof Unreachable) {
    away = true;
    trouble("Not saved: loupe review does not answer. What you typed is still here; start it again and open the address that it prints.");
  } else if (error instanceof Refused && error.status === 422) {
    form.showProblem(error.data.field, error.message);
    toast(`Not saved: ${error.message}`, "bad");
  } else {
    toast(`Not done: ${error.message}${error.data?.hint ? ` (${error.data.hint})` : ""}`, "bad");
    if (error instanceof Refused && error.status === 403) trouble(`Not saved: ${error.message}`);
  }
}

/** The line is another one by now: the person chooses. Nothing is thrown away meanwhile. */
async function conflict(error, status, fields) {
  let theirs;
  try { theirs = await get(`/entry/${entry.number}?id=${encodeURIComponent(entry.id)}`); } catch { theirs = null; }
  const box = byId("conflict");
  box.replaceChildren();
  const line = document.createElement("p");
  const gone = !theirs || theirs.id !== entry.id;
  line.textContent = `Not saved: ${gone ? `this ${noun} is not in the file any more` : `another tab or program has changed this ${noun} since you opened it`}. Nothing was overwritten.`;
  box.append(line);
  const buttons = document.createElement("p");
  const button = (text, action) => {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: text });
    made.addEventListener("click", action);
    buttons.append(made);
  };
  if (gone) button("Go on", () => reloadList().then(() => openRow(list.first())));
  else {
    button("Show what is there now", () => { form.settle(entry.seen); show(theirs); reloadList(); });
    button("Save mine all the same", async () => {
      entry = { ...entry, seen: theirs.seen, number: theirs.number };
      if (await send(status)) { toast(`${entry.id}: yours is saved`); await reloadList(); }
    });
  }
  box.append(buttons);
  box.hidden = false;
  box.querySelector("button").focus();
  toast(error.message, "bad");
}

/** Take in what other tabs and programs did. */
async function refresh() {
  await reloadList();
  if (!entry) return;
  const theirs = await get(`/entry/${entry.number}?id=${encodeURIComponent(entry.id)}`).catch(() => null);
  if (!theirs || theirs.seen === entry.seen || saving) {
    if (theirs && theirs.number !== entry.number) { entry.number = theirs.number; settleOn({ restored: false }); }
    return;
  }
  if (form.isDirty()) { await conflict({ message: `this ${noun} was changed elsewhere` }, null, {}); return; }
  show(theirs, { keepFocus: true });
  toast(`This ${noun} was changed by another tab or program; it is shown as it is now.`);
}

async function poll() {
  try {
    const data = await get(`/state?tab=${tab}&hidden=${Number(document.hidden)}`);
    if (away) { away = false; trouble(""); }
    const others = byId("tabs");
    others.hidden = !data.others;
    const [long, short] = others.children;
    long.textContent = data.others === 1 ? "also open in another tab" : `also open in ${data.others} other tabs`;
    short.textContent = `${data.others + 1} tabs`;
    if (data.revision !== state.revision && !saving && byId("conflict").hidden) await refresh();
  } catch (error) {
    if (error instanceof Unreachable) { away = true; trouble("loupe review does not answer: nothing can be saved. Start it again and open the address that it prints."); }
    else trouble(error.message);
  }
  clearTimeout(pollTimer);
  pollTimer = setTimeout(poll, POLL);
}

// --- keys ---

const move = (step) => openRow(list.neighbour(entry.number, step));

async function nextOpen(step) {
  const next = list.neighbour(entry.number, step, list.isOpen, { round: true });
  if (next) await openRow(next);
  else if (await flush()) finished();
}

function focusField(control) {
  control.focus();
  if (control.setSelectionRange && control.tagName === "TEXTAREA") control.setSelectionRange(control.value.length, control.value.length);
}

/** Whether the list is a drawer over the rest. */
const isNarrow = () => matchMedia("(max-width: 1100px)").matches;

function toFilter(name) {
  root.dataset.list = "open";
  byId("filters").elements[name].focus();
}

async function differences(step) {
  if (form.stepDifferences(step)) await change();
}

const KEYS = {
  a: () => decide("verified"),
  r: () => decide("rejected"),
  c: () => decide("unreviewed"),
  e: () => { const control = form.firstField(); if (control) focusField(control); },
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
  z: viewer.closeUp,
  l: () => { root.dataset.list = root.dataset.list === "open" ? "closed" : "open"; },
  t: switchTheme,
  "[": () => differences(-1),
  "]": () => differences(1),
  "?": () => byId("help").showModal(),
};
const PAN = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
/** In these, a key that moves the page or the list belongs to the control. */
const TYPING = "textarea, select, input:not([type=checkbox])";

function onKey(event) {
  if (event.isComposing || document.querySelector("dialog[open]")) return;
  const control = event.target.closest?.("#form [data-control]");
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s") {
    event.preventDefault();
    flush();
    return;
  }
  const typing = event.target.closest?.(TYPING);
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z" && !typing) {
    event.preventDefault();
    undo();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { leave(event, control, typing); return; }
  if (event.key === "Enter" && control && !event.shiftKey && control.tagName !== "SELECT") {
    event.preventDefault();
    flush().then((saved) => { if (saved) control.blur(); });
    return;
  }
  if (typing) {
    if (event.key === "Enter" && typing.closest("#filters")) {
      event.preventDefault();
      typing.blur();
      if (isNarrow()) root.dataset.list = "closed";
      openRow(list.neighbour(0, 1));
    }
    return;
  }
  if (!entry) return;
  if (event.shiftKey && Object.hasOwn(PAN, event.key)) { event.preventDefault(); viewer.pan(...PAN[event.key]); return; }
  if (Object.hasOwn(PAN, event.key) && event.target.id === "page-view") { event.preventDefault(); viewer.pan(...PAN[event.key]); return; }
  if (event.key === " " && !event.target.closest?.("button, a, summary, input")) { event.preventDefault(); viewer.screenful(event.shiftKey ? -1 : 1); return; }
  if (event.repeat && "arcu".includes(event.key)) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}

function leave(event, control, typing) {
  if (control) { event.preventDefault(); form.takeBack(control); control.blur(); }
  else if (typing) typing.blur();
  else if (isNarrow()) root.dataset.list = "closed";
  else if (document.activeElement) document.activeElement.blur();
}

// --- theme ---

const dark = matchMedia("(prefers-color-scheme: dark)");

function storedTheme(value) {
  try {
    if (value) localStorage.setItem("loupe-theme", value);
    return localStorage.getItem("loupe-theme");
  } catch {
    return value;
  }
}

function applyTheme(name) { root.dataset.theme = name || (dark.matches ? "dark" : "light"); }

function switchTheme() {
  const name = root.dataset.theme === "dark" ? "light" : "dark";
  storedTheme(name);
  applyTheme(name);
}

function start() {
  applyTheme(storedTheme());
  dark.addEventListener("change", () => applyTheme(storedTheme()));
  showState(state);
  viewer.startViewer();
  list.filterFromAddress();
  byId("theme").addEventListener("click", switchTheme);
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
  document.addEventListener("keydown", onKey);
  addEventListener("beforeunload", (event) => { if (form.isDirty() || saving) event.preventDefault(); });
  document.addEventListener("visibilitychange", poll);
  addEventListener("pagehide", () => { post("/leave", { tab }, true).catch(() => {}); });
  if (entry) {
    byId("form").addEventListener("change", () => { change(); });
    settleOn({ restored: form.startForm(entry) });
  } else {
    list.applyFilter(0);
    byId("actions").hidden = true;
  }
  poll();
  root.dataset.ready = "true";
}

start();
