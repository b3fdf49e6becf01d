// A worker of the explorer, behind wasm_exec.js: the same Go program as sotto, compiled to
// WebAssembly. It is given the compiled module, and then answers questions one after the other, each
// by its number.
"use strict";
let ready;
const started = new Promise(done => { ready = done; });
globalThis.sottoReady = () => ready();
addEventListener("message", async ({data}) => {
  try {
    if (data.module) {
      const go = new Go();
      go.run(await WebAssembly.instantiate(data.module, go.importObject));
      await started;
      return postMessage({id: data.id, value: true});
    }
    await started;
    const value = globalThis.sotto[data.ask](...data.with);
    if (typeof value !== "string") postMessage({id: data.id, value}, [value.buffer]);
    else postMessage({id: data.id, value: JSON.parse(value)});
  } catch (e) {
    postMessage({id: data.id, value: {error: String(e)}});
  }
});
