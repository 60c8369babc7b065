// The page of one sample, and the one where its answer can be edited.

function go(selector) {
  const link = document.querySelector(`#sample ${selector}[href]`);
  if (link) location.assign(link.href);
}

function mode(name) {
  if (!view.payload) return;
  view.mode = view.chosen = name;
  drawPanes();
}

const KEYS = {
  j: () => go(".sample-next"),
  k: () => go(".sample-previous"),
  g: () => location.assign(LISTED_AT),
  Escape: () => location.assign(LISTED_AT),
  e: () => location.assign(places.whatIf),
  1: () => mode("rendered"),
  2: () => mode("difference"),
  3: () => mode("raw"),
  4: () => { if (hasMatch(view.payload)) mode("match"); },
  5: () => { if (hasFacts(view.payload)) mode("tests"); },
  z: () => { const picture = view.payload?.pictures.find((candidate) => candidate.src); if (picture) zoom(picture.src); },
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  stepThroughRows(event);
  if (event.target.closest("input, select, textarea") || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}

async function startSample() {
  const sample = index.groups[0].samples[0];
  if (document.querySelector("main.comparing")) view.chosen = view.mode = "rendered";
  try {
    await openSample(sample);
  } catch (error) {
    document.getElementById("sample").replaceChildren(failureBox("This sample cannot be shown", error.message));
    return;
  }
  const edit = make("a", { class: "quiet", href: places.whatIf, title: "Edit an answer and see its score (e)" }, "What if …");
  document.querySelector("#sample .sample-place").before(edit);
  document.addEventListener("keydown", onKey);
  document.documentElement.dataset.open = "true";
}

/** Edits are scored by the server when the typing pauses; nothing is kept anywhere. */
function startWhatIf() {
  const start = JSON.parse(document.getElementById("what-if-start").textContent);
  const [area, run, said, back] = ["area", "run", "said", "back"].map((name) => document.getElementById(`what-if-${name}`));
  let pause = 0, latest = 0;
  const compare = () => {
    const box = document.getElementById("what-if-difference");
    box.replaceChildren(start.reference ? differenceBlock(area.value, start.reference, "words") : notice("This sample has no reference text."));
  };
  const score = async () => {
    clearTimeout(pause);
    const mine = ++latest;
    said.textContent = "Scoring …";
    try {
      const answer = await fetch("/what-if", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Loupe-Token": document.documentElement.dataset.token },
        body: JSON.stringify({ board: start.board, run: run.value, sample: start.sample, text: area.value }),
      });
      const found = await answer.json();
      if (mine !== latest) return;
      if (!answer.ok) throw new Error(found.message);
      said.textContent = "What the official scorer says of this text:";
      document.getElementById("what-if-numbers").replaceChildren(scoreTable("This sample", found.sample), scoreTable("The whole run", found.run));
    } catch (error) {
      if (mine === latest) said.textContent = `Not scored: ${error.message}.`;
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
  run.addEventListener("change", () => {
    const address = new URL(location.href);
    address.searchParams.set("run", run.value);
    location.assign(address);
  });
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
