// What a key does: nowhere a letter while something is typed, everywhere else one key for one action.

import { breaksLines, takeBack } from "./form.js";
import * as viewer from "./viewer.js";

const root = document.documentElement;
let actions = null;

/** Whether the list is a drawer over the rest. */
export const isNarrow = () => matchMedia("(max-width: 1100px)").matches;

const PAN = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
/** In these, a key that moves the page or the list belongs to the control. */
const TYPING = "textarea, select, input:not([type=checkbox], [type=radio])";

function onKey(event) {
  if (event.isComposing || document.querySelector("dialog[open]")) return;
  const control = event.target.closest?.("#form [data-control]");
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s") {
    event.preventDefault();
    actions.save();
    return;
  }
  const typing = event.target.closest?.(TYPING);
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z" && !typing) {
    event.preventDefault();
    actions.undo();
    return;
  }
  if (event.altKey && !event.ctrlKey && !event.metaKey && control && /^Digit[1-9]$/.test(event.code)) {
    event.preventDefault();
    actions.take(Number(event.code.at(-1)) - 1, control.name);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { leave(event, control, typing); return; }
  if (event.key === "Enter" && control && !event.shiftKey && control.tagName !== "SELECT" && !breaksLines(control)) {
    event.preventDefault();
    // At once, so that the next key is one of the page's.
    control.blur();
    actions.save();
    return;
  }
  if (typing) {
    if (event.key === "Enter" && typing.closest("#filters")) {
      event.preventDefault();
      typing.blur();
      if (isNarrow()) root.dataset.list = "closed";
      actions.first();
    }
    return;
  }
  // Among labels these choose another one; all other keys are those of the page.
  if (event.target.type === "radio" && (event.key.startsWith("Arrow") || event.key === " ")) return;
  if (!actions.isOpen()) return;
  if (event.shiftKey && Object.hasOwn(PAN, event.key)) { event.preventDefault(); viewer.pan(...PAN[event.key]); return; }
  if (Object.hasOwn(PAN, event.key) && event.target.id === "page-view") { event.preventDefault(); viewer.pan(...PAN[event.key]); return; }
  if (event.key === " " && !event.target.closest?.("button, a, summary, input")) { event.preventDefault(); viewer.screenful(event.shiftKey ? -1 : 1); return; }
  if (event.repeat && "arcsu".includes(event.key)) return;
  if (!Object.hasOwn(actions.keys, event.key)) return;
  event.preventDefault();
  actions.keys[event.key]();
}

function leave(event, control, typing) {
  if (control && breaksLines(control)) { event.preventDefault(); control.blur(); }
  else if (control) { event.preventDefault(); takeBack(control); control.blur(); }
  else if (typing) typing.blur();
  else if (isNarrow()) root.dataset.list = "closed";
  else if (document.activeElement) document.activeElement.blur();
}

/** Begin to listen. `given` has `keys` by name, and what a form needs: save, undo, first, isOpen. */
export function startKeys(given) {
  actions = given;
  document.addEventListener("keydown", onKey);
}
