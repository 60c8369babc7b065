// What others do with the file meanwhile: asked every two seconds, for a page cannot know of itself.

import { get, post, Unreachable } from "./server.js";
import { trouble } from "./say.js";

const POLL = 2000;
const tab = [...crypto.getRandomValues(new Uint32Array(3))].map((value) => value.toString(36)).join("");
let timer = 0, away = false, leaving = false, told = null;

async function poll() {
  clearTimeout(timer);
  if (leaving) return;
  try {
    const data = await get(`/state?tab=${tab}&hidden=${Number(document.hidden)}`);
    const isBack = away;
    if (isBack) trouble("");
    away = false;
    showOthers(data.others);
    await told(data, isBack);
  } catch (error) {
    away = true;
    trouble(error instanceof Unreachable
      ? "loupe review does not answer: nothing can be saved. Start it again as before and open the address that it prints; then what you typed can be saved here too."
      : error.message);
  }
  clearTimeout(timer);
  timer = setTimeout(poll, POLL);
}

function showOthers(count) {
  const line = document.getElementById("tabs"), [long, short] = line.children;
  line.hidden = !count;
  long.textContent = count === 1 ? "also open in another tab" : `also open in ${count} other tabs`;
  short.textContent = `${count + 1} tabs`;
  line.title = "This is safe: each tab keeps its changes and shows those of the other";
}

/** Begin to ask; `onState` gets how things stand, with a number that grows whenever the file changes, and whether the
 * server has just come back: it may be another one, which counts anew. */
export function startWatching(onState) {
  told = onState;
  document.addEventListener("visibilitychange", poll);
  addEventListener("pageshow", () => { leaving = false; });
  addEventListener("pagehide", () => { leaving = true; post("/leave", { tab }, true).catch(() => {}); });
  poll();
}
