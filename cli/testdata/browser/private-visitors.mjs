// The page of a shop whose rewards nobody sees. Many visitors come to it, one after the other in each
// of a few lanes, and each has a store of its own, as in a browser of its own.
import { connect, newMemory } from 'sotto';

const seen = { given: {}, outcomes: [[], []], lost: 0, reports: 0, refused: 0, bytes: {}, requests: 0 };

// The arm of a ticket, and its number among those of the arm.
const numbers = new Map();
const place = (ticket) => {
  const raw = Uint8Array.from(atob(ticket.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
  const view = new DataView(raw.buffer);
  return [view.getUint32(0), Number(view.getBigUint64(4))];
};

// What goes out is counted under way.
const raw = globalThis.fetch;
globalThis.fetch = async (url, options) => {
  const answer = await raw(url, options);
  if (String(url).includes('/decisions?')) {
    const { decision, report } = await answer.clone().json();
    if (report) numbers.set(decision, place(report.ticket));
  }
  if (String(url).endsWith('/reports')) {
    if (!answer.ok) return answer; // it is sent again
    seen.requests++;
    const said = await answer.clone().arrayBuffer();
    seen.bytes[options.body.length] = (seen.bytes[options.body.length] ?? 0) + 1;
    if (said.byteLength === 0) seen.reports++; // it was taken
    else seen.refused++;
  }
  return answer;
};

globalThis.seen = () => seen;

// visit sends visitors, by the tokens that the shop's server signed for them; of each arm's visitors
// this share buys, and says so at some time between. Who does not says nothing.
globalThis.visit = async (leader, key, pin, tokens, share) => {
  let next = 0;
  await Promise.all(Array.from({ length: 6 }, async () => {
    while (next < tokens.length) {
      const client = connect({ leader, key, pins: { shop: pin }, store: newMemory() });
      const unitToken = tokens[next++];
      let d;
      for (let i = 0; i < 20 && !d; i++) { // a service that is busy is asked again, for the same visitor
        d = await client.decide('shop', { unitToken, signal: AbortSignal.timeout(30_000) })
          .catch((err) => { seen.error = String(err); });
        if (!d) await new Promise((done) => { setTimeout(done, 500); });
      }
      if (!d?.decision) {
        seen.lost++;
        continue;
      }
      const n = seen.given[d.arm] = (seen.given[d.arm] ?? 0) + 1;
      const buys = Math.floor(n * share[d.arm]) > Math.floor((n - 1) * share[d.arm]);
      const [arm, number] = numbers.get(d.decision);
      seen.outcomes[arm][number] = buys && client.outcome(d, 1) ? 1 : 0; // false: its time has passed
    }
  }));
};

// time is how many milliseconds the report of one visitor takes, as the mean of some.
globalThis.time = async (leader, key, pin, tokens) => {
  const took = [];
  for (const token of tokens) {
    const store = newMemory(), client = connect({ leader, key, pins: { shop: pin }, store });
    await client.decide('shop', { unitToken: token });
    took.push(await new Promise((done) => {
      const of = store.setItem;
      let began;
      const ours = globalThis.fetch;
      globalThis.fetch = (url, options) => {
        if (String(url).endsWith('/hpke_config')) began = performance.now();
        return ours(url, options);
      };
      store.setItem = (k, v) => {
        of(k, v);
        const e = JSON.parse(v);
        if (e.body && began) { globalThis.fetch = ours; done(performance.now() - began); }
      };
    }));
  }
  return took.reduce((a, b) => a + b, 0) / took.length;
};
globalThis.ready = true;
