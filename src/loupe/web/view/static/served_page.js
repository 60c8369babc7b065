// The page of one sample, and the one where its answer can be edited.

/** Steps that keys have asked for and that are still to be taken: none is lost while a sample is on its way. */
let steps = 0, walking = false;

async function step(by) {
  steps += by;
  if (walking) return;
  walking = true;
  document.getElementById("sample").setAttribute("aria-busy", "true");
  let at = "", failure = null;
  try {
    while (steps) {
      const forward = steps > 0;
      const next = forward ? places.next : places.previous;
      steps = next ? steps - Math.sign(steps) : 0;
      if (!next) break;
      await takePage(next);
      at = next;
    }
  } catch (error) {
    steps = 0;
    failure = error;
  }
  walking = false;
  document.getElementById("sample").removeAttribute("aria-busy");
  const reached = index.groups[0].samples[0];
  if (at) {
    history.pushState(null, "", at);
    window.scrollTo(0, 0);
    await showSample();
  }
  // Said last, for the sample before the one that failed was drawn by now; unless somebody has gone on since.
  if (failure && index.groups[0].samples[0] === reached) fail(failure);
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  g: () => location.assign(LISTED_AT),
  Escape: () => location.assign(LISTED_AT),
  e: () => location.assign(places.whatIf),
  ...SAMPLE_KEYS,
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  stepThroughRows(event);
  if (event.target.closest("input, select, textarea") || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}

function fail(error) {
  document.getElementById("sample").replaceChildren(failureBox("This sample cannot be shown", error.message));
}

async function showSample() {
  const sample = index.groups[0].samples[0];
  try {
    await openSample(sample);
  } catch (error) {
    if (view.sample === sample) fail(error);
    return;
  }
  if (view.sample !== sample) return;
  const edit = make("a", { class: "quiet", href: places.whatIf, title: "Edit an answer and see its score (e)" }, "What if …");
  document.querySelector("#sample .sample-place").before(edit);
}

function startSample() {
  if (document.querySelector("main.comparing")) view.chosen = view.mode = "rendered";
  // Before the sample is there, so that no key is lost.
  document.addEventListener("keydown", onKey);
  window.addEventListener("popstate", () => takePage(location.href).then(showSample, fail));
  showSample();
}

/** Edits are scored by the server when the typing pauses; nothing is kept anywhere. */
function startWhatIf() {
  const start = JSON.parse(document.getElementById("what-if-start").textContent);
  const [area, run, said, back] = ["area", "run", "said", "back"].map((name) => document.getElementById(`what-if-${name}`));
  const tab = crypto.getRandomValues(new Uint32Array(2)).join("-");
  let pause = 0, asking = null;
  const compare = () => {
    const box = document.getElementById("what-if-difference");
    box.replaceChildren(start.reference ? differenceBlock(area.value, start.reference, "words") : notice("This sample has no reference text."));
  };
  const score = async () => {
    clearTimeout(pause);
    if (start.why) return;
    asking?.abort();
    const mine = asking = new AbortController();
    said.textContent = "Scoring …";
    try {
      const answer = await fetch("/what-if", {
        method: "POST",
        signal: mine.signal,
        headers: { "Content-Type": "application/json", "X-Loupe-Token": document.documentElement.dataset.token },
        body: JSON.stringify({ board: start.board, run: run.value, sample: start.sample, text: area.value, tab }),
      });
      const found = await answer.json();
      if (mine !== asking) return;
      if (!answer.ok) throw new Error(found.message);
      said.textContent = "Official score of this text:";
      document.getElementById("what-if-numbers").replaceChildren(scoreTable("This sample", found.sample), scoreTable("The whole run", found.run));
    } catch (error) {
      if (mine === asking) said.textContent = `Not scored: ${error.message}.`;
    }
  };
  area.addEventListener("input", () => {
    back.disabled = area.value === start.text;
    clearTimeout(pause);
    pause = setTimeout(() => { compare(); score(); }, 700);
  });
  area.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); compare(); score(); } });
  document.getElementById("what-if-score").addEventListener("click", () => { compare(); score(); });
  back.addEventListener("click", () => { area.value = start.text; back.disabled = true; area.focus(); compare(); score(); });
  const change = () => {
    const address = new URL(location.href);
    address.searchParams.set("run", run.value);
    location.assign(address);
  };
  run.addEventListener("change", change);
  // What was chosen before this script was there counts too.
  if (run.selectedOptions && !run.selectedOptions[0].defaultSelected) change();
  // Escape leaves the text, which view.js sees to, and from there goes back to the sample.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === "Escape") location.assign(places.back);
    if (event.key === "g") location.assign(places.listed);
  });
  area.focus({ preventScroll: true });
  area.setSelectionRange(0, 0);
  compare();
}

function scoreTable(title, lines) {
  const head = ["", "as it was", "edited", "change"].map((text, place) => make("th", { scope: "col", class: place ? "number" : "" }, text));
  const rows = lines.map((line) => make("tr", {}, make("th", { scope: "row" }, line.title), make("td", { class: "number" }, line.before),
    make("td", { class: "number" }, make("strong", {}, line.after)),
    make("td", { class: `number verdict-word ${line.changed ? (line.better ? "better" : "worse") : ""}` }, line.change)));
  return make("div", { class: "table-scroll" }, make("table", { class: "plain" }, make("caption", {}, title), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
}

if (document.getElementById("what-if-start")) startWhatIf(); else startSample();
