// The form of an entry: what was changed in it, what is wrong with it, and edits that survive a reload.

import { startPreview, drawPreview } from "./math.js";
import { readValues, renderText } from "./previews.js";
import { refreshTable } from "./table.js";

const form = document.getElementById("form");
let seen = "", goes = 0;
const tab = crypto.getRandomValues(new Uint32Array(2)).join("-");

/** Names what is typed in one go: until another field has the focus. */
export const going = () => `${tab}-${goes}`;

const controls = () => [...form.querySelectorAll("[data-control]")];
const raw = (control) => (control.type === "checkbox" ? control.checked : control.value);

/** The value as the server takes it; what is no number stays a text, and the server says so. */
function typed(control) {
  if (control.dataset.control !== "number") return raw(control);
  const text = control.value.trim();
  if (text === "") return null;
  return /^\d{1,15}$/.test(text) ? Number(text) : text;
}

const named = (name) => controls().find((control) => control.name === name);

/** What stands in a field now. */
export const valueOf = (name) => named(name)?.value;

/** Put a text into a field, as if it had been typed. */
export function put(name, text) {
  const control = named(name);
  if (!control) return;
  control.value = text;
  showLabel(control);
  afterInput();
}

/** Labels are buttons; their value stands in a control that nobody sees. */
function showLabel(control) {
  if (control.dataset.control !== "label") return;
  for (const button of control.closest("fieldset").querySelectorAll("[type=radio]")) button.checked = button.value === control.value;
}

/** Choose the label at this place; whether there is one. */
export function chooseLabel(place) {
  const button = form.querySelectorAll(".labels [type=radio]")[place];
  if (!button) return false;
  put(button.closest("fieldset").querySelector("[data-control]").name, button.value);
  return true;
}

/** What stands in every field, by name; `fill` puts it into another form, as far as that has the fields. */
export const values = () => Object.fromEntries(controls().map((control) => [control.name, raw(control)]));

export function fill(given) {
  for (const control of controls()) if (Object.hasOwn(given, control.name)) set(control, given[control.name]);
  afterInput();
}

function set(control, value) {
  if (control.type === "checkbox") control.checked = value;
  else control.value = value;
  showLabel(control);
}

/** The controls of an entry as another has written it, by name. */
function controlsOf({ form: html }) {
  const found = new DOMParser().parseFromString(html, "text/html").querySelectorAll("[data-control]");
  return new Map([...found].map((control) => [control.name, control]));
}

/** Fields, with their texts, in which an entry is unlike the form that stands. */
export function unlike(theirs) {
  const there = controlsOf(theirs);
  return controls().filter((control) => there.has(control.name) && raw(there.get(control.name)) !== raw(control))
    .map(({ name }) => [name, String(raw(there.get(name)))]);
}

/** Take theirs for what the server has, so that all that is unlike it is an edit; false where theirs has other fields. */
export function rebase(theirs) {
  const there = controlsOf(theirs), mine = controls();
  if (there.size !== mine.length || mine.some(({ name }) => !there.has(name))) return false;
  forget();
  for (const control of mine) control.known = raw(there.get(control.name));
  seen = theirs.seen;
  keep();
  return true;
}

/** Fields that differ from what the server has. */
export function edits() {
  return Object.fromEntries(controls().filter((control) => raw(control) !== control.known).map((control) => [control.name, typed(control)]));
}

export const isDirty = () => Object.keys(edits()).length > 0;

/** Take the form for what the server has now. `sent` limits that to fields as they were sent; typing may have gone on. */
export function settle(now, sent = null) {
  forget();
  for (const control of controls()) {
    if (sent === null || (Object.hasOwn(sent, control.name) && sent[control.name] === typed(control))) control.known = raw(control);
    else if (Object.hasOwn(sent, control.name)) control.known = typeof sent[control.name] === "boolean" ? sent[control.name] : String(sent[control.name] ?? "");
  }
  seen = now;
  keep();
}

/* global INVISIBLE, SHAPING, codeOf */
/** What no reader sees, and blanks that look like a space. */
const UNSEEN = new RegExp(`[${INVISIBLE}${SHAPING}\\r\\u00a0\\u2000-\\u200a\\u202f\\u205f\\u3000]`, "gu");

/** What in a text cannot be seen: it is compared all the same. */
function remarkOn(control) {
  const line = control.closest(".field").querySelector(".field-remark");
  if (!line || control.tagName !== "TEXTAREA") return;
  const codes = [...new Set(control.value.match(UNSEEN) || [])].map(codeOf);
  const parts = codes.length ? [`invisible characters: ${codes.slice(0, 6).join(", ")}`] : [];
  if (/^\s/u.test(control.value)) parts.push("begins with a space");
  if (control.value.trim() && /\s$/u.test(control.value)) parts.push("ends with a space");
  line.textContent = parts.join("; ");
  line.hidden = !parts.length;
}

/** Fields as tall as their text, where the style alone cannot do it. */
function grow(control) {
  if (control.tagName !== "TEXTAREA" || control.classList.contains("as-long") || CSS.supports("field-sizing", "content")) return;
  control.style.height = "auto";
  control.style.height = `${control.scrollHeight + 2}px`;
}

/** A browser that fits a field to a megabyte of text does nothing else. */
const LONG = 40000;

function remark() {
  for (const control of controls()) {
    control.classList.toggle("as-long", typeof control.value === "string" && control.value.length > LONG);
    remarkOn(control);
    grow(control);
  }
}

function afterInput() {
  keep();
  clearProblem();
  drawPreview(form);
  refreshTable(form);
  readValues(form);
  renderText(form);
  remark();
}

function begin() {
  const restored = restore();
  startPreview(form);
  refreshTable(form);
  if (restored) readValues(form);
  renderText(form, 0);
  remark();
  return restored;
}

export function showForm(html, entry) {
  form.innerHTML = html;
  seen = entry.seen;
  for (const control of controls()) control.known = raw(control);
  return begin();
}

export function startForm(entry) {
  seen = entry.seen;
  for (const control of controls()) control.known = control.type === "checkbox" ? control.defaultChecked : control.value;
  const restored = begin();
  form.addEventListener("input", (event) => {
    if (event.target.name === "label-choice") put(event.target.closest("fieldset").querySelector("[data-control]").name, event.target.value);
    else afterInput();
  });
  form.addEventListener("focusin", (event) => {
    goes += 1;
    if (event.target.dataset.control && raw(event.target) === event.target.known) event.target.entered = raw(event.target);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  return restored;
}

/** Texts of many lines: Enter breaks the line there, and Escape or Ctrl+S leaves. */
export const breaksLines = (control) => ["prose", "markdown", "table", "list"].includes(control.dataset.control);

/** How one saves or leaves an edit that came back with the tab. */
export function waysOut() {
  const edited = controls().find((control) => raw(control) !== control.known);
  return edited && breaksLines(edited) ? "Ctrl+S saves it" : "Ctrl+S saves it, Esc in its field discards it";
}

/** Put a field back to what it was when it was entered: it may have been saved since. */
export function takeBack(control) {
  set(control, control.entered ?? control.known);
  afterInput();
}

// What is typed and not saved yet is kept in this tab, under what the line looked like: a reload brings it back.
const key = () => `loupe-edit ${seen}`;

function keep() {
  const changed = Object.fromEntries(controls().filter((control) => raw(control) !== control.known).map((control) => [control.name, raw(control)]));
  try {
    if (Object.keys(changed).length) sessionStorage.setItem(key(), JSON.stringify(changed));
    else sessionStorage.removeItem(key());
  } catch { /* Without storage nothing is kept over a reload; everything else works. */ }
}

function forget() { try { sessionStorage.removeItem(key()); } catch { /* as above */ } }

function restore() {
  let kept = null;
  try { kept = JSON.parse(sessionStorage.getItem(key()) || "null"); } catch { /* as above */ }
  if (!kept) return false;
  for (const control of controls()) if (Object.hasOwn(kept, control.name)) set(control, kept[control.name]);
  return isDirty();
}

export function showProblem(name, message) {
  clearProblem();
  const control = controls().find((candidate) => candidate.name === name) || controls()[0];
  if (!control) return;
  const more = control.closest("details");
  if (more) more.open = true;
  const line = control.closest(".field").querySelector(".field-problem");
  line.id = `problem-${control.id}`;
  line.textContent = message;
  line.hidden = false;
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", line.id);
  // The focus stays where the person left it: in the field, the next shortcut would be typed into the ground truth.
  line.scrollIntoView({ block: "nearest" });
}

export function clearProblem() {
  for (const line of form.querySelectorAll(".field-problem")) line.hidden = true;
  for (const control of form.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-describedby");
  }
}

/** Into the field to start with: the fact itself, else the first detail. */
export function focusFirst() {
  const fact = form.querySelector(".facts [data-field=cell] [data-control]") || form.querySelector(".labels [type=radio]:checked, .labels [type=radio]")
    || form.querySelector(".grid textarea") || form.querySelector(".facts .differs [data-control]") || form.querySelector(".facts [data-control]");
  const control = fact || controls()[0];
  control?.focus();
  if (control?.tagName === "TEXTAREA") control.setSelectionRange(control.value.length, control.value.length);
}

export function stepDifferences(step) {
  const control = controls().find((candidate) => candidate.name === "max_diffs");
  if (!control || control.closest("details")) return false;
  control.value = String(Math.max(0, (Number.parseInt(control.value, 10) || 0) + step));
  return control.value !== control.known;
}
