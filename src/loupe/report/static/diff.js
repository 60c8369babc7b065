// Differences between two texts: Myers' algorithm in linear space (E. Myers, Algorithmica 1, 1986), as in GNU diff.
// A box that costs too much is split where the search got furthest; after the deadline the rest is one coarse change.

const NO_SPACES = "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}";
const WORD = new RegExp(`\\s+|[${NO_SPACES}]\\p{M}*|(?:(?![${NO_SPACES}])[\\p{L}\\p{N}\\p{M}_])+|[^]`, "gu");
/** A command or character of LaTeX with the blanks after it, which say nothing there. */
const LATEX = /(?:\\[A-Za-z]+|\\[^]|[^])\s*/gu;
const COST_LIMIT = 1024;

function tokensOf(text, unit) {
  if (unit === "LaTeX") return text.trim().match(LATEX) || [];
  return unit === "words" ? text.match(WORD) || [] : Array.from(text);
}

/** Numbers in place of tokens; with words, all white space is the same. */
function numbered(lists, unit) {
  const known = new Map();
  return lists.map((list) => Int32Array.from(list, (token) => {
    const key = unit === "LaTeX" ? token.trim() : unit === "words" && /^\s/.test(token) ? " " : token;
    if (!known.has(key)) known.set(key, known.size);
    return known.get(key);
  }));
}

/** Marks what of `a` and `b` is changed. Returns whether the deadline made the end of it coarse. */
function markChanges(a, b, changedA, changedB, deadline) {
  const offset = b.length + 1;
  const forward = new Int32Array(a.length + b.length + 3);
  const backward = new Int32Array(a.length + b.length + 3);
  const boxes = [[0, a.length, 0, b.length]];
  let coarse = false;
  while (boxes.length) {
    let [a0, a1, b0, b1] = boxes.pop();
    while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) { a0++; b0++; }
    while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) { a1--; b1--; }
    const split = a0 < a1 && b0 < b1 && !coarse
      ? splitPoint(a, a0, a1, b, b0, b1, forward, backward, offset, deadline)
      : null;
    if (split) {
      boxes.push([split[0], a1, split[1], b1], [a0, split[0], b0, split[1]]);
      continue;
    }
    if (a0 < a1 && b0 < b1) coarse = true;
    changedA.fill(1, a0, a1);
    changedB.fill(1, b0, b1);
  }
  return coarse;
}

/** A point on a shortest path through the box, a good one if that costs too much, or null after the deadline. */
function splitPoint(a, a0, a1, b, b0, b1, forward, backward, offset, deadline) {
  const lowest = a0 - b1, highest = a1 - b0, start = a0 - b0, end = a1 - b1;
  const odd = ((start - end) & 1) !== 0;
  let fMin = start, fMax = start, bMin = end, bMax = end;
  forward[start + offset] = a0;
  backward[end + offset] = a1;
  for (let cost = 1; ; cost++) {
    if (fMin > lowest) forward[--fMin - 1 + offset] = -1; else ++fMin;
    if (fMax < highest) forward[++fMax + 1 + offset] = -1; else --fMax;
    for (let d = fMax; d >= fMin; d -= 2) {
      const below = forward[d - 1 + offset], above = forward[d + 1 + offset];
      let x = below >= above ? below + 1 : above, y = x - d;
      while (x < a1 && y < b1 && a[x] === b[y]) { x++; y++; }
      forward[d + offset] = x;
      if (odd && bMin <= d && d <= bMax && backward[d + offset] <= x) return [x, y];
    }
    if (bMin > lowest) backward[--bMin - 1 + offset] = 0x7fffffff; else ++bMin;
    if (bMax < highest) backward[++bMax + 1 + offset] = 0x7fffffff; else --bMax;
    for (let d = bMax; d >= bMin; d -= 2) {
      const below = backward[d - 1 + offset], above = backward[d + 1 + offset];
      let x = below < above ? below : above - 1, y = x - d;
      while (x > a0 && y > b0 && a[x - 1] === b[y - 1]) { x--; y--; }
      backward[d + offset] = x;
      if (!odd && fMin <= d && d <= fMax && x <= forward[d + offset]) return [x, y];
    }
    if ((cost & 31) === 0 && performance.now() > deadline) return null;
    if (cost >= COST_LIMIT) return furthest(forward, fMin, fMax, offset, a1, b1);
  }
}

function furthest(forward, fMin, fMax, offset, a1, b1) {
  let best = [-1, -1], sum = -1;
  for (let d = fMax; d >= fMin; d -= 2) {
    let x = Math.min(forward[d + offset], a1), y = x - d;
    if (y > b1) { y = b1; x = y + d; }
    if (x + y > sum) { sum = x + y; best = [x, y]; }
  }
  return best;
}

/**
 * The difference as a list of [kind, text], kind "same", "missing" (only in the reference) or "extra" (only in the
 * prediction), with counts of tokens and whether it became coarse. `unit` is "words", "characters" or "LaTeX".
 */
function difference(prediction, reference, unit, milliseconds = 400) {
  const deadline = performance.now() + milliseconds;
  const inReference = tokensOf(reference, unit), inPrediction = tokensOf(prediction, unit);
  const [a, b] = numbered([inReference, inPrediction], unit);
  const changedA = new Uint8Array(a.length), changedB = new Uint8Array(b.length);
  const coarse = markChanges(a, b, changedA, changedB, deadline);
  if (unit === "words") joinOverSpaces(inReference, inPrediction, changedA, changedB);
  const segments = [], counts = { same: 0, missing: 0, extra: 0 };
  const add = (kind, list, from, to) => {
    if (from === to) return;
    const part = list.slice(from, to);
    counts[kind] += unit === "words" ? part.filter((token) => /\S/.test(token)).length : part.length;
    segments.push([kind, part.join("")]);
  };
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    const i0 = i, j0 = j;
    while (i < a.length && changedA[i]) i++;
    while (j < b.length && changedB[j]) j++;
    add("missing", inReference, i0, i);
    add("extra", inPrediction, j0, j);
    const same = j;
    while (i < a.length && j < b.length && !changedA[i] && !changedB[j]) { i++; j++; }
    add("same", inPrediction, same, j);
  }
  return { segments, counts, coarse };
}

/** One space between two replaced words is part of the replacement: "old old" → "new new" reads better whole. */
function joinOverSpaces(inReference, inPrediction, changedA, changedB) {
  let i = 0, j = 0;
  while (i < changedA.length || j < changedB.length) {
    const i0 = i, j0 = j;
    while (i < changedA.length && changedA[i]) i++;
    while (j < changedB.length && changedB[j]) j++;
    const changed = i > i0 && j > j0;
    if (changed && inPrediction[j] === " " && changedA[i + 1] && changedB[j + 1]) {
      changedA[i] = changedB[j] = 1;
      continue;
    }
    if (i < changedA.length) i++;
    if (j < changedB.length) j++;
  }
}
