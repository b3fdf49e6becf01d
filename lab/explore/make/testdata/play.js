// Plays links with the simulator of a directory, and prints the last picture of each, and the offers:
// node play.js DIRECTORY LINK…
"use strict";
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { gunzipSync } = require("node:zlib");
const [dir, ...links] = process.argv.slice(2);
require(join(dir, "wasm_exec.js"));
const play = link => {
  const opened = JSON.parse(sotto.open(link, null));
  if (opened.error) return opened;
  let picture;
  for (let runs = 0, next = opened.next; next > 0; [runs, next] = [next, picture.next]) {
    for (let i = 0; i < opened.cells; i++) {
      const out = sotto.play(i, runs, next - runs);
      if (typeof out === "string") return JSON.parse(out);
      sotto.put(i, runs, out);
    }
    picture = JSON.parse(sotto.picture(next));
    if (picture.error) return picture;
  }
  return picture;
};
globalThis.sottoReady = () => {
  const lines = [...links.map(link => JSON.stringify(play(link))), sotto.offers(), ""];
  process.stdout.write(lines.join("\n"), () => process.exit(0)); // a pipe takes it later
};
const go = new Go();
WebAssembly.instantiate(gunzipSync(readFileSync(join(dir, "sotto.wasm.gz"))), go.importObject)
  .then(({ instance }) => go.run(instance))
  .catch(e => { console.error(e); process.exit(1); });
