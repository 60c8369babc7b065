// Draws an equation into a text that nobody looks at, to find out whether it can be drawn in time, and how large it is.

/* global katex */
importScripts("/katex/katex.min.js");

const LARGEST = 400000;

addEventListener("message", ({ data: { number, text, settings } }) => {
  let error = null;
  try {
    const size = katex.renderToString(text, settings).length;
    if (size > LARGEST) error = "too large to render";
  } catch (failure) {
    error = String(failure.message || failure);
  }
  postMessage({ number, error });
});
