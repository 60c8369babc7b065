// What the page says: how far the review is, what was just done, what is wrong.

import { toast } from "./notes.js";

export { endComplaint, toast, trouble } from "./notes.js";

const byId = (name) => document.getElementById(name);
const { refused } = document.documentElement.dataset;
const done = (verified, rejected) => `${verified} verified${refused ? `, ${rejected} ${refused}` : ""}`;

/** What a status is called. */
export const said = (status) => (status === "rejected" ? refused : status);

export function showCounts({ counts, undo, locked }) {
  byId("locked").hidden = !locked;
  byId("locked").textContent = locked ? `Nothing can be saved: ${locked}. You can still look; continue here once it is writable again.` : "";
  const { unreviewed, verified, rejected, broken } = counts;
  const all = unreviewed + verified + rejected, share = all ? 100 / all : 0;
  const [good, bad] = document.querySelectorAll(".meter rect");
  good.setAttribute("width", verified * share);
  bad.setAttribute("x", verified * share);
  bad.setAttribute("width", rejected * share);
  const percent = all ? Math.floor((100 * (verified + rejected)) / all) : 0;
  const [long, short] = byId("progress").children;
  short.textContent = `${verified + rejected} / ${all}`;
  long.textContent = `${verified + rejected} of ${all} reviewed, ${percent}%: ${done(verified, rejected)}${broken ? `, ${broken} broken` : ""}`;
  byId("undo").disabled = !undo;
  byId("undo").title = undo ? `Undo (u): ${undo}` : "Nothing to undo";
}

/** Nothing is left to review, here or at all. */
export function finished({ unreviewed, verified, rejected, broken }) {
  if (unreviewed) { toast(`None left to review with this filter, ${unreviewed} in all.`); return; }
  byId("finished-text").textContent = `${done(verified, rejected)}${broken ? `; ${broken} cannot be read and stay unchanged` : ""}. All is saved; Ctrl-C in the terminal ends Loupe.`;
  byId("finished").showModal();
}

/** The line is another one by now: what is so, and what can be done about it. */
export function showConflict(why, choices) {
  const box = byId("conflict"), buttons = document.createElement("p");
  for (const [text, action] of Object.entries(choices)) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: text });
    button.addEventListener("click", action);
    buttons.append(button);
  }
  const line = Object.assign(document.createElement("p"), { textContent: `Not saved: ${why}. Nothing was overwritten.` });
  box.replaceChildren(line, buttons);
  box.hidden = false;
  buttons.firstElementChild.focus();
}
