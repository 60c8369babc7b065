// What the server holds beside the index: the payload of the sample, its pictures, drawings of its formulas.

let places = index.addresses;
let drawn = null;

/** Takes in the page of another sample: its index in place of the one here. */
async function takePage(address) {
  const answer = await fetch(address, { credentials: "same-origin", cache: "no-store", headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById("index");
  if (!answer.ok || !found) throw new Error(page.querySelector("main .notice")?.textContent || `the server says ${answer.status}`);
  Object.assign(index, JSON.parse(found.textContent));
  places = index.addresses;
  drawn = null;
  prepare();
}

function thumbnailOf() {
  return places.thumbnail;
}

async function asked(address) {
  const answer = await fetch(address, { credentials: "same-origin", cache: "no-store" });
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.message || `the server says ${answer.status}`);
  return data;
}

async function payloadOf() {
  return asked(places.payload);
}

/** All drawings of the sample, asked for with the first of them. */
async function drawings() {
  drawn ??= asked(places.drawings).catch((error) => ({ blocks: {}, summary: { runs: {}, note: error.message } }));
  return drawn;
}

async function drawingOf(key) {
  return (await drawings()).blocks[key] || "";
}

async function drawingsOf() {
  return (await drawings()).summary;
}

/** Where the sample stands in the list that it was opened from, and the addresses of those beside it. */
function neighbours() {
  return { place: places.place, count: places.count, previous: places.previous, next: places.next };
}

const LISTED_AT = places.listed, LISTED_AS = places.listedAs;
