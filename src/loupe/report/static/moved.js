// Blocks of a text that stand elsewhere in the other one: found first, so that they are not struck out and put in again.

/** So few words say nothing of where a block comes from. */
const LEAST_WORDS = 3;
/** Blocks with this share of their words in common are one, misread; so many of them are compared with each other. */
const ALIKE = 0.75;
const COMPARED = 40000;

/** The lines of a text, or its paragraphs where both have empty lines, each with the blanks after it. */
function blocksOf(text, byParagraph) {
  const end = byParagraph ? /\n[^\S\n]*\n\s*/g : /\n\s*/g;
  const blocks = [];
  let from = 0;
  for (const match of [...text.matchAll(end), { index: text.length, 0: "" }]) {
    const words = text.slice(from, match.index).toLowerCase().match(WORD)?.filter((word) => /[\p{L}\p{N}]/u.test(word)) ?? [];
    if (words.length >= LEAST_WORDS) blocks.push({ start: from, end: match.index + match[0].length, words, key: words.join(" ") });
    from = match.index + match[0].length;
  }
  return blocks;
}

/** The reference with the blanks at the end that the prediction has: where a block stands last is no difference. */
function endingAlike(reference, prediction) {
  return reference.trimEnd() + prediction.slice(prediction.trimEnd().length);
}

function wordsInCommon(one, other) {
  const counts = new Map();
  for (const word of one) counts.set(word, (counts.get(word) ?? 0) + 1);
  let same = 0;
  for (const word of other) if (counts.get(word) > 0) { same += 1; counts.set(word, counts.get(word) - 1); }
  return 2 * same / (one.length + other.length);
}

/** Pairs of blocks that are one, as [block of the prediction, block of the reference], in the order of the prediction. */
function blockPairs(given, wanted, milliseconds) {
  const waiting = new Map();
  for (const block of wanted) waiting.set(block.key, [...(waiting.get(block.key) ?? []), block]);
  const pairs = new Map();
  for (const block of given) if (waiting.get(block.key)?.length) pairs.set(block, waiting.get(block.key).shift());
  const taken = new Set(pairs.values());
  const left = given.filter((block) => !pairs.has(block)), open = wanted.filter((block) => !taken.has(block));
  const deadline = performance.now() + milliseconds;
  if (left.length * open.length <= COMPARED) {
    for (const block of left) {
      let best = null, most = ALIKE;
      for (const other of open) {
        if (performance.now() > deadline) break;
        if (taken.has(other) || 2 * Math.min(block.words.length, other.words.length) < ALIKE * (block.words.length + other.words.length)) continue;
        const alike = wordsInCommon(block.words, other.words);
        if (alike >= most) { best = other; most = alike + 1e-9; }
      }
      if (best) { pairs.set(block, best); taken.add(best); }
    }
  }
  return given.filter((block) => pairs.has(block)).map((block) => [block, pairs.get(block)]);
}

/** The pairs that stay where they are: the heaviest chain that has the same order in both texts. */
function unmoved(pairs) {
  const weight = [], before = [];
  pairs.forEach(([block, other], at) => {
    weight[at] = block.words.length;
    before[at] = -1;
    for (let earlier = 0; earlier < at; earlier++) {
      if (pairs[earlier][1].start < other.start && weight[earlier] + block.words.length > weight[at]) {
        weight[at] = weight[earlier] + block.words.length;
        before[at] = earlier;
      }
    }
  });
  const kept = new Set();
  for (let at = weight.indexOf(Math.max(...weight)); at >= 0; at = before[at]) kept.add(at);
  return kept;
}

/** Blocks of the prediction that stand elsewhere in the reference, as [block there, block here]; in the order of the first. */
function movedBlocks(prediction, reference, milliseconds) {
  const byParagraph = [prediction, reference].every((text) => /\n[^\S\n]*\n/.test(text.trim()));
  const given = blocksOf(prediction, byParagraph), wanted = blocksOf(reference, byParagraph);
  if (given.length < 2 || wanted.length < 2 || given.length > 2000 || wanted.length > 2000) return [];
  const pairs = blockPairs(given, wanted, milliseconds), kept = unmoved(pairs);
  return pairs.filter((_, at) => !kept.has(at));
}

/**
 * As `difference`, with blocks that have another place as segments of the kind "moved": [kind, text, inner segments].
 * They stand where the prediction has them; the reference goes on without them.
 */
function differenceWithMoves(prediction, reference, unit, milliseconds = 400) {
  const moves = movedBlocks(prediction, reference, milliseconds);
  if (!moves.length) return difference(prediction, reference, unit, milliseconds);
  const without = (text, blocks) => {
    let kept = "", from = 0;
    for (const block of [...blocks].sort((one, other) => one.start - other.start)) { kept += text.slice(from, block.start); from = block.end; }
    return kept + text.slice(from);
  };
  const stays = without(prediction, moves.map(([block]) => block)), wanted = without(reference, moves.map(([, block]) => block));
  const rest = difference(stays, endingAlike(wanted, stays), unit, milliseconds);
  const segments = [], counts = { ...rest.counts, moved: 0 };
  let place = 0, next = 0, coarse = rest.coarse;
  const insertMoves = () => {
    while (next < moves.length && moves[next][0].start === place) {
      const [block, other] = moves[next++];
      const text = prediction.slice(block.start, block.end);
      const inner = difference(text, endingAlike(reference.slice(other.start, other.end), text), unit, 50);
      for (const kind of ["missing", "extra"]) counts[kind] += inner.counts[kind];
      counts.moved += inner.counts.same;
      coarse ||= inner.coarse;
      segments.push(["moved", text, inner.segments]);
      place = block.end;
    }
  };
  for (const [kind, text] of rest.segments) {
    let from = 0;
    while (kind !== "missing" && from < text.length) {
      insertMoves();
      const room = next < moves.length ? moves[next][0].start - place : Infinity;
      const part = text.slice(from, from + room);
      segments.push([kind, part]);
      from += part.length;
      place += part.length;
    }
    if (kind === "missing") segments.push([kind, text]);
  }
  insertMoves();
  return { segments, counts, coarse };
}
