// The list: which rows are shown, which one is open, where the next one is. The filter is part of the address.

const list = document.getElementById("list");
const filters = document.getElementById("filters");
const FIELDS = ["q", "status", "kind", "document"];
let passing = () => true;

export const row = (number) => document.getElementById(`line-${number}`);
const rows = () => [...list.querySelectorAll(".row")];
const isShown = (candidate) => !candidate.closest("li").hidden;
export const isOpen = (candidate) => candidate.dataset.status === "unreviewed";

function matches(candidate) {
  const { q, status, kind, document: named } = Object.fromEntries(FIELDS.map((name) => [name, filters.elements[name]?.value || ""]));
  const data = candidate.dataset;
  if (status === "problem" || status === "differs" ? !(status in data) : status && data.status !== status) return false;
  if (kind && data.kind !== kind) return false;
  if (named && data.document !== named) return false;
  return !q || `${data.id} ${candidate.textContent}`.toLowerCase().includes(q.toLowerCase());
}

/** Show what passes the filter; the row that is open stays, so that nothing vanishes under one's hands. */
export function applyFilter(current) {
  passing = matches;
  let shown = 0, all = 0;
  for (const group of list.children) {
    let some = false;
    for (const candidate of group.querySelectorAll(".row")) {
      const passes = passing(candidate);
      candidate.closest("li").hidden = !passes && Number(candidate.dataset.number) !== current;
      shown += passes; all += 1;
      some ||= !candidate.closest("li").hidden;
    }
    group.hidden = !some;
  }
  const filtered = FIELDS.some((name) => filters.elements[name]?.value);
  document.getElementById("filter-count").textContent = filtered ? `${shown} of ${all}` : `${all} in all`;
  document.getElementById("filter-clear").hidden = !filtered;
}

export function clearFilter() {
  for (const name of FIELDS) if (filters.elements[name]) filters.elements[name].value = "";
}

export function address(number) {
  const words = new URLSearchParams({ line: number });
  for (const name of FIELDS) if (filters.elements[name]?.value) words.set(name, filters.elements[name].value);
  return `/?${words}`;
}

export function filterFromAddress() {
  const words = new URLSearchParams(location.search);
  for (const name of FIELDS) {
    const control = filters.elements[name], value = words.get(name) || "";
    if (!control) continue;
    if (control.tagName !== "SELECT" || [...control.options].some((option) => option.value === value)) control.value = value;
  }
}

/** The next row after `number` (step 1) or before it (-1) that passes the filter and the test, going round the end. */
export function neighbour(number, step, wanted = () => true, { round = false } = {}) {
  const all = rows();
  const at = all.findIndex((candidate) => Number(candidate.dataset.number) === number);
  const ahead = step > 0 ? all.slice(at + 1) : all.slice(0, Math.max(at, 0)).reverse();
  const behind = step > 0 ? all.slice(0, Math.max(at, 0)) : all.slice(at + 1).reverse();
  return [...ahead, ...(round ? behind : [])].find((candidate) => passing(candidate) && wanted(candidate)) || null;
}

export function nextGroup(number) {
  const group = row(number)?.closest(".group-of-page");
  for (let next = group?.nextElementSibling; next; next = next.nextElementSibling) {
    const first = [...next.querySelectorAll(".row")].find(isShown);
    if (first) return first;
  }
  return null;
}

export function markCurrent(number) {
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const current = row(number);
  if (!current) return;
  current.setAttribute("aria-current", "true");
  const pane = document.getElementById("list-pane").getBoundingClientRect();
  const place = current.getBoundingClientRect();
  if (place.height && (place.top < pane.top + 220 || place.bottom > pane.bottom - 60)) current.scrollIntoView({ block: "center" });
}

export function replaceRow(number, html) {
  const old = row(number);
  if (!old) return;
  const group = old.closest(".group-of-page");
  old.closest("li").outerHTML = html;
  const all = [...group.querySelectorAll(".row")];
  const decided = all.filter((candidate) => !isOpen(candidate) && candidate.dataset.status !== "broken");
  group.querySelector(".group-count").textContent = `${decided.length}/${all.length}`;
}

export function replaceList(html) { list.innerHTML = html; }

export const first = () => rows()[0] || null;
