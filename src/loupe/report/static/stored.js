// What the file holds beside the index: for each sample a thumbnail and a gzipped payload, and drawings of formulas.

function textOf(id) {
  const element = document.getElementById(id);
  return element ? element.textContent : "";
}

function thumbnailOf(sample) {
  const data = textOf(`t${sample.number}`);
  return data && `data:image/webp;base64,${data}`;
}

async function payloadOf(sample) {
  return unpacked(textOf(`d${sample.number}`));
}

/** The drawing of a pair of formulas, gzipped in base64; "" if it is not drawn. */
async function drawingOf(key) {
  return textOf(`f${key}`);
}

/** How many formulas are drawn, and why others are not. */
async function drawingsOf(group) {
  const packed = textOf(`formulas-${index.groups.indexOf(group)}`);
  return packed ? unpacked(packed) : { runs: {}, note: "" };
}

/** The address of a sample inside this file. */
function addressOf(sample) {
  const group = index.groups.length > 1 ? `&b=${encodeURIComponent(sample.group.key)}` : "";
  return `#s=${encodeURIComponent(sample.id)}${group}`;
}

/** Where a sample stands among those of the grid, and the addresses of those beside it. */
function neighbours(sample) {
  const place = grid.shown.indexOf(sample);
  const beside = (step) => (place >= 0 && grid.shown[place + step] ? addressOf(grid.shown[place + step]) : "");
  return { place, count: grid.shown.length, previous: beside(-1), next: beside(1) };
}

/** Where the samples are listed. */
const LISTED_AT = "#samples", LISTED_AS = "Samples";
