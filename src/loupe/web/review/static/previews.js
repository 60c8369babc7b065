// What the server makes of a text while it is typed: Markdown as it looks, and how dates and amounts are read.

import { post } from "./server.js";

let asked = 0, reading = 0, timer = 0, readTimer = 0, drawn = null;

/** Render the Markdown of the form; `wait` keeps every key from asking. */
export function renderText(form, wait = 250) {
  clearTimeout(timer);
  const place = form.querySelector("#rendered");
  if (!place) drawn = null;
  if (!place || place.hidden) return;
  timer = setTimeout(() => render(place, place.closest(".field").querySelector("[data-control]").value), wait);
}

async function render(place, text) {
  if (text === drawn && place.dataset.drawn) return;
  const turn = ++asked;
  let answer = { html: "", notice: "" };
  if (text.trim()) {
    try { answer = await post("/preview", { text }); } catch (error) { answer = { html: "", notice: `No preview: ${error.message}` }; }
  }
  if (turn !== asked || !place.isConnected) return;
  drawn = text;
  // The server has cut it down to what can do no harm, and the policy of this page lets nothing of it run or load.
  place.innerHTML = answer.html;
  if (answer.notice) place.prepend(Object.assign(document.createElement("p"), { className: "notice", textContent: answer.notice }));
  if (!text.trim()) place.append(Object.assign(document.createElement("p"), { className: "nothing", textContent: "nothing" }));
  place.dataset.drawn = "yes";
}

/** Say beside each date and amount how it is read. */
export function readValues(form) {
  clearTimeout(readTimer);
  const typed = [...form.querySelectorAll("[data-control][data-kind=date], [data-control][data-kind=amount]")];
  if (!typed.length) return;
  readTimer = setTimeout(async () => {
    const turn = ++reading;
    const values = Object.fromEntries(typed.map((control) => [control.name, [control.dataset.kind, control.value]]));
    let hints = {};
    try { ({ hints } = await post("/preview", { values })); } catch { return; /* A hint is a help; saving says the same. */ }
    if (turn !== reading) return;
    for (const control of typed) {
      const line = control.closest(".field").querySelector(".field-hint"), hint = hints[control.name];
      if (!line || !hint) continue;
      line.textContent = hint.text;
      line.hidden = !hint.text;
      line.classList.toggle("unreadable", hint.unreadable);
    }
  }, 150);
}
