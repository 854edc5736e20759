"use strict";
// Compressed bytes in letters, as the page carries them, back to bytes.
async function unpackBytes(text) {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k++) packed[k] = letters.charCodeAt(k);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}
