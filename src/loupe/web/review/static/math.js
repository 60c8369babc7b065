// The preview of an equation. KaTeX first draws it in a worker, which is ended when it takes too long: an equation may
// define macros that never end. Only what was drawn there in time and is small is drawn in the page.

const PATIENCE = 1500;
const LONGEST = 20000;
const SETTINGS = { displayMode: true, throwOnError: true, trust: false, strict: "ignore", maxSize: 50, maxExpand: 1000 };
const note = document.documentElement.dataset.math;
const impossible = note.startsWith("no preview");
let worker = null, library = null, count = 0, drawn = null, timer = 0;

function loadLibrary() {
  library ||= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/katex/katex.min.js";
    script.addEventListener("load", () => resolve(window.katex));
    script.addEventListener("error", () => reject(new Error("KaTeX could not be loaded")));
    document.head.append(script);
  });
  return library;
}

/** Whether the equation can be drawn in time: null if so, else why not. */
function tryOut(text) {
  worker ||= new Worker("/static/math-worker.js");
  const number = ++count, asked = worker;
  return new Promise((resolve) => {
    const late = setTimeout(() => {
      asked.terminate();
      if (worker === asked) worker = null;
      resolve("takes too long to render");
    }, PATIENCE);
    asked.addEventListener("message", function listen({ data }) {
      if (data.number !== number) return;
      clearTimeout(late);
      asked.removeEventListener("message", listen);
      resolve(data.error);
    });
    asked.postMessage({ number, text, settings: SETTINGS });
  });
}

async function draw(form) {
  const preview = form.querySelector("#preview");
  const text = preview?.closest(".field").querySelector("textarea").value;
  if (!preview || text === drawn) return;
  drawn = text;
  if (impossible || text.length > LONGEST) {
    say(preview, impossible ? note : `more than ${LONGEST.toLocaleString("en")} characters are not rendered`);
    return;
  }
  const error = text.trim() ? await tryOut(text) : "empty";
  if (drawn !== text || !preview.isConnected) return;
  if (error) { say(preview, error); return; }
  try {
    const katex = await loadLibrary();
    const box = document.createElement("div");
    katex.render(text, box, SETTINGS);
    box.className = "equation";
    const about = note ? [Object.assign(document.createElement("p"), { className: "preview-note", textContent: note })] : [];
    preview.replaceChildren(box, ...about);
    preview.dataset.drawn = "yes";
  } catch (failure) {
    say(preview, failure.message);
  }
}

function say(preview, text) {
  const line = document.createElement("p");
  line.className = impossible ? "preview-note" : "preview-error";
  line.textContent = text.replace(/^KaTeX parse error: /, "KaTeX: ").slice(0, 300);
  preview.replaceChildren(line);
  preview.dataset.drawn = "no";
}

export function startPreview(form) { drawn = null; draw(form); }

export function drawPreview(form) {
  clearTimeout(timer);
  timer = setTimeout(() => draw(form), 120);
}
