// Hostile text on the page: always as text nodes.

const SHOWN_AT_ONCE = 100000;
const SEGMENT_LIMIT = 20000;
const SAME = {
  words: "the same; punctuation marks count separately, unlike in WER", characters: "characters the same",
  LaTeX: "commands and characters the same; spaces do not count",
};
const LONG_WORD = /(\S{200})/u;

/** Lets words of thousands of characters break at fixed places: the browser takes minutes to find places of its own. */
function breakLongWords(block) {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  const long = [];
  while (walker.nextNode()) if (LONG_WORD.test(walker.currentNode.data)) long.push(walker.currentNode);
  for (const node of long) {
    const parts = node.data.split(LONG_WORD).flatMap((part, place) => (place % 2 ? [part, make("wbr")] : [part]));
    node.replaceWith(...parts.filter((part) => part !== ""));
  }
  return block;
}

/** A block of text as it is; of a long one the beginning, and a button for the rest. */
function textBlock(text, { hidden = 0, kind = "plain" } = {}) {
  const block = make("div", { class: `text ${kind}`, dir: "auto", tabindex: "-1" });
  if (text === "") block.append(make("span", { class: "nothing" }, "nothing"));
  block.append(...visibleText(text.slice(0, SHOWN_AT_ONCE)));
  breakLongWords(block);
  const all = make("div", {}, block);
  if (text.length > SHOWN_AT_ONCE) {
    const button = make("button", { type: "button", class: "quiet" }, `Show all ${text.length.toLocaleString("en")} characters`);
    button.addEventListener("click", () => { block.replaceChildren(...visibleText(text)); breakLongWords(block); button.remove(); });
    all.append(button);
  }
  if (hidden) all.append(notice(`${hidden.toLocaleString("en")} more characters are not in this report; the run folder has them.`));
  return all;
}

function notice(text) {
  return make("p", { class: "notice" }, text);
}

/** One segment as text or marked. Between words, how they are spaced is no difference; between characters it is. */
function segmentParts(kind, text, unit) {
  const spacing = unit === "words" && /^\s+$/.test(text);
  if (kind === "same" || (spacing && kind === "extra")) return visibleText(text);
  if (spacing) return [];
  return [make(kind === "missing" ? "del" : "ins", {}, ...visibleText(text.replace(/\n/g, "↵\n"), true))];
}

/** The difference between prediction and reference as one flowing text, with its counts above. */
function differenceBlock(prediction, reference, unit, full = false) {
  const { segments, counts, coarse } = differenceWithMoves(prediction, reference, unit);
  const block = make("div", { class: `text diff ${unit}${full ? " free" : ""}`, dir: "auto" });
  let shown = 0;
  for (const [kind, text, inner] of segments.slice(0, SEGMENT_LIMIT)) {
    if (shown > SHOWN_AT_ONCE) break;
    const parts = (inner ?? [[kind, text.slice(0, SHOWN_AT_ONCE - shown + 1000)]]).flatMap((segment) => segmentParts(...segment, unit));
    if (kind === "moved") block.append(make("span", { class: "moved-text", title: "elsewhere in the reference" }, ...parts));
    else block.append(...parts);
    shown += text.length;
  }
  const number = (count) => count.toLocaleString("en");
  const total = counts.missing + counts.extra + (counts.moved ?? 0);
  const line = make("p", { class: `counts${full ? " free" : ""}` }, total === 0 ? `No difference in ${unit}.` : "");
  if (total) {
    line.append(...(counts.moved ? [make("span", { class: "moved-text" }, `${number(counts.moved)} moved`), " "] : []),
      make("del", {}, `${number(counts.missing)} missing`), " ", make("ins", {}, `${number(counts.extra)} extra`),
      ` ${number(counts.same)} ${SAME[unit]}`);
  }
  const all = make("div", {}, line);
  if (full && total) all.append(notice("Full score: these differences cost nothing, so none are struck out."));
  if (coarse) all.append(notice("The texts are too long and too different for an exact difference; its end is approximate."));
  if (shown > SHOWN_AT_ONCE || segments.length > SEGMENT_LIMIT) all.append(notice("Only the beginning of the difference is shown."));
  all.append(breakLongWords(block));
  return all;
}
