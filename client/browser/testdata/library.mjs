// Holds sotto-private.js, as it is served, to the vectors of secagg/dap, to what a page may rely on,
// and to the exact laws of its noise. It prints a line for each thing that held. Time, locks,
// network and randomness are its own.
import assert from 'node:assert/strict';
import { createCipheriv } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connect, newMemory, noise, resume } from '../sotto-private.js';

const step = (text) => process.stdout.write(`${text}\n`);
const unhex = (text) => new Uint8Array(Buffer.from(text, 'hex'));

// ---- a world without accidents
const spoken = []; // what the library said in the console
for (const way of ['log', 'info', 'warn', 'error', 'debug']) console[way] = (...args) => spoken.push(args);

let now = 1_800_000_000_000, timers = [];
Date.now = () => now;
globalThis.setTimeout = (f, ms) => {
  const t = { at: now + ms, f };
  timers.push(t);
  return t;
};
globalThis.clearTimeout = (t) => { timers = timers.filter((x) => x !== t); };
AbortSignal.timeout = () => new AbortController().signal;

// settled waits until nothing is under way: but for WebCrypto all goes on at once.
let busy = 0;
for (const name of ['importKey', 'exportKey', 'sign', 'deriveBits', 'encrypt']) {
  const was = SubtleCrypto.prototype[name];
  SubtleCrypto.prototype[name] = function counted(...args) {
    busy++;
    return was.apply(this, args).finally(() => { busy--; });
  };
}
async function settled() {
  for (let quiet = 0; quiet < 10; quiet = busy > 0 ? 0 : quiet + 1) {
    await new Promise((done) => { setImmediate(done); });
  }
}
async function advance(ms) {
  const end = now + ms;
  for (;;) {
    await settled();
    const next = timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
    if (!next) break;
    now = Math.max(now, next.at);
    timers = timers.filter((t) => t !== next);
    next.f();
  }
  now = end;
}

const held = new Set();
Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { locks: {
  async request(name, { ifAvailable }, f) {
    assert.equal(ifAvailable, true);
    if (held.has(name)) return f(null);
    held.add(name);
    try {
      return await f({ name });
    } finally {
      held.delete(name);
    }
  },
} } });

// ---- a leader
let sent = [], answers = [], terms, config;
globalThis.fetch = async (url, { method = 'GET', body } = {}) => {
  const path = new URL(url).pathname;
  if (path === '/hpke_config') return { ok: true, arrayBuffer: async () => Uint8Array.from(config).buffer };
  if (path.endsWith('/decisions')) {
    return { ok: true, json: async () => ({ decision: terms.ticket, arm: 'red', propensity: 0.5,
      expires_at: null, reason: 'split', report: structuredClone(terms) }) };
  }
  assert.equal(method, 'POST');
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('hex');
  sent.push({ at: now, path, text });
  const answer = answers.shift() ?? 200;
  if (answer === 'gone') throw new TypeError(`fetch failed: ${text}`);
  return { status: answer };
};
const list = (text) => {
  const one = Buffer.from(text, 'base64url');
  return Buffer.concat([Buffer.from([0, one.length]), one]);
};

// ---- the vectors, whole: from a visitor's outcome to what is sent
const vectors = JSON.parse(await readFile(process.argv[2], 'utf8'));
const random = crypto.getRandomValues.bind(crypto);
let drawn;
const draws = (bytes) => {
  crypto.getRandomValues = (into) => {
    assert.equal(into.length, bytes.length);
    drawn++;
    into.set(bytes);
    return into;
  };
};
for (const v of vectors) {
  const ticket = Buffer.from(v.ticket, 'hex').toString('base64url');
  terms = { trust: 'two-server', ticket, after_ms: 1000, range: [0, 1], default: 0, time: v.time, grid: v.grid,
    task: Buffer.from(v.task_id, 'hex').toString('base64url'), helper: 'https://elsewhere.example', key: 'AgAg' };
  config = list(v.leader_config);
  sent = [];
  drawn = 0;
  draws(unhex(v.randomness));
  const page = connect({ leader: 'https://leader.example', key: 'k', store: newMemory(),
    pins: { shop: { trust: 'two-server', helper: v.helper_config, task: terms.task } } });
  const d = await page.decide('shop');
  assert.equal(page.outcome(d, v.value / v.grid), true);
  await advance(1000);
  assert.deepEqual([drawn, sent.length], [1, 1], v.name);
  assert.equal(sent[0].path, `/tasks/${terms.task}/reports`);
  assert.equal(sent[0].text, v.report, v.name);
}
crypto.getRandomValues = random;
assert.ok(vectors.length >= 7);
step('reports are those of the vectors, byte for byte');

// ---- what a page may rely on
const [v] = vectors;
const task = Buffer.from(v.task_id, 'hex').toString('base64url');
const two = { trust: 'two-server', helper: v.helper_config, task };
const open = (store, pins = { shop: two }) => connect({ leader: 'https://leader.example', key: 'k', store, pins });
let tickets = 0;
function offer(more = {}) {
  const b = Buffer.alloc(24);
  b.writeUInt32BE(++tickets, 8);
  terms = { trust: 'two-server', ticket: b.toString('base64url'), after_ms: 60_000, range: [0, 1], default: 0,
    time: v.time, grid: 1, task, ...more };
  sent = [];
  answers = [];
}

// What leaves the browser is at the same times and of the same sizes, whatever happened.
const views = [];
for (const what of ['nothing', 'a click', 'two', 'the page is left']) {
  offer();
  const began = now, store = newMemory(), page = open(store), d = await page.decide('shop');
  await advance(10_000);
  if (what === 'a click' || what === 'two') assert.equal(page.outcome(d), true);
  if (what === 'two') assert.equal(page.outcome(d.decision, 0), true);
  if (what === 'the page is left') { // until another page of the site is opened
    timers = [];
    await advance(500_000);
    assert.deepEqual(sent, []);
    now -= 500_000 - 40_000;
    resume(store);
  }
  await advance(49_999 - (what === 'the page is left' ? 40_000 : 0));
  assert.deepEqual(sent, [], what);
  await advance(500_000);
  assert.equal(page.outcome(d, 0), false);
  views.push(sent.map((s) => [s.at - began, s.path, s.text.length]));
  assert.deepEqual(views.at(-1), views[0], what);
  assert.equal(views[0].length, 1);
  assert.equal(views[0][0][0], 60_000);
}
step('one report is sent at its time, whatever happened');

// Two pages of a site send one report between them, and none after a decision that is given again.
{
  offer();
  const store = newMemory(), pages = [open(store), open(store)];
  const d = await pages[0].decide('shop');
  assert.deepEqual(await pages[1].decide('shop'), d);
  assert.equal(pages[1].outcome(d, 1), true);
  now += 60_000;
  resume(store);
  resume(store);
  await advance(5_000);
  await pages[1].decide('shop');
  await advance(100_000);
  assert.equal(sent.length, 1);
  const left = [...Array(store.length).keys()].map((i) => store.getItem(store.key(i)));
  assert.deepEqual(left.map((text) => Object.keys(JSON.parse(text)).sort()), [['decision', 'due', 'sent']]);
  await advance(91 * 86_400_000);
  resume(store);
  assert.equal(store.length, 0);
}
step('two pages send it once, and nothing of the outcome stays');

// A leader that is away gets the same bytes later, of two servers and of local noise.
const local = { trust: 'local', law: 'laplace', noise: '671088641/64' };
for (const pin of [two, local]) {
  offer(pin === local ? local : {});
  answers = ['gone', 503, 429];
  const page = open(newMemory(), { shop: pin }), d = await page.decide('shop');
  page.outcome(d, 1);
  await advance(100_000);
  assert.equal(sent.length, 4);
  assert.equal(new Set(sent.map((s) => s.text)).size, 1);
  assert.deepEqual(sent.map((s) => s.at - sent[0].at), [0, 1000, 3000, 7000]);
}
step('what nobody answered is sent again, the same bytes');

// The service cannot have it reported in another way.
for (const [more, pin, what] of [
  [{ trust: 'local', law: 'laplace', noise: '1/1000000' }, two, 'trust'],
  [{ trust: 'central' }, two, 'trust'],
  [{ grid: 1500 }, two, 'grid'], [{ grid: 2 ** 21 }, two, 'grid'], [{ grid: 0 }, two, 'grid'],
  [{ task: 'other' }, two, 'task'], [{ task: 'B'.repeat(43) }, two, 'task'], [{}, { ...two, task: 'A'.repeat(43) }, 'task'],
  [{ ...local, noise: '1/64' }, local, 'noise'], [{ ...local, law: 'gaussian' }, local, 'law'],
  [{ ticket: '"' }, two, 'ticket'], [{ after_ms: -1 }, two, 'after_ms'], [{ range: [1, 1] }, two, 'range'],
  [{ default: null }, two, 'default'],
]) {
  offer(more);
  const store = newMemory();
  await assert.rejects(open(store, { shop: pin }).decide('shop'), { message:
    `sotto: shop: the leader's ${what} is not what the page has pinned` });
  await advance(100_000);
  assert.deepEqual([store.length, sent], [0, []], what);
}
await assert.rejects(open(newMemory(), {}).decide('shop'), /pinned nothing/);
assert.throws(() => open(newMemory(), { shop: { ...two, helper: 'AgAg' } }), /key of the helper must be/);
for (const bad of [undefined, '', 'other']) assert.throws(() => open(newMemory(), { shop: { ...two, task: bad } }), /pinned task must be/);
assert.throws(() => open(newMemory(), { shop: { ...local, noise: '1/0' } }), /fraction/);
step('a service that says otherwise than the page has pinned is told nothing');

// No outcome is in an error or a console.
offer();
{
  const page = open(newMemory()), d = await page.decide('shop');
  for (const bad of [NaN, Infinity, -Infinity, '31337', null, 31337n]) {
    assert.throws(() => page.outcome(d, bad), { message: 'sotto: outcome must be a finite number' });
  }
  assert.equal(page.outcome('nobody', 31337), false);
  config = Uint8Array.of(1, 2, 3);
  assert.equal(page.outcome(d, 31337), true);
  await advance(100_000);
  assert.deepEqual([spoken, sent], [[], []]);
  config = list(v.leader_config); // and the leader's key is there again
  await advance(400_000);
  assert.equal(sent.length, 1);
}
step('outcomes are in no error and in no console');

// ---- noise
function seeded(name) {
  const cipher = createCipheriv('aes-128-ctr', Buffer.from(name.padEnd(16)), Buffer.alloc(16));
  let pool = Buffer.alloc(0);
  crypto.getRandomValues = (into) => {
    if (pool.length < into.length) pool = cipher.update(Buffer.alloc(1 << 16));
    into.set(pool.subarray(0, into.length));
    pool = pool.subarray(into.length);
    return into;
  };
}

// chi is χ² of draws against the masses of cells: below the first edge, between edges, from the last.
function chi(draw, edges, mass) {
  const n = 100_000, seen = new Array(edges.length + 1).fill(0);
  for (let i = 0; i < n; i++) {
    const x = draw();
    let lo = 0, hi = edges.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (edges[mid] <= x) lo = mid + 1; else hi = mid;
    }
    seen[lo]++;
  }
  return seen.reduce((sum, o, i) => {
    const e = n * mass(edges[i - 1] ?? -Infinity, edges[i] ?? Infinity);
    assert.ok(e > 5);
    return sum + (o - e) ** 2 / e;
  }, 0);
}
const span = (lo, hi, by = 1) => Array.from({ length: hi - lo + 1 }, (_, i) => (lo + i) * by);

// The mass of whole numbers from a to b, not b, by the closed form of Laplace.
const laplace = (scale) => {
  const from = (k) => Math.exp(-k / scale) / (1 + Math.exp(-1 / scale)); // P(X ≥ k), k ≥ 0
  const above = (k) => k === -Infinity ? 1 : k > 0 ? from(k) : 1 - from(1 - k);
  return (a, b) => above(a) - above(b);
};
// And of Gaussian, by its sum; where it is wide, by Simpson's rule, which is off by less than 1e-9.
const gaussian = (variance) => {
  const f = (x) => Math.exp(-x * x / (2 * variance)), s = Math.sqrt(variance);
  const sum = (a, b) => {
    [a, b] = [Math.max(a, Math.round(-12 * s)), Math.min(b, Math.round(12 * s))];
    if (s < 100) return span(a, b - 1).reduce((t, x) => t + f(x), 0);
    const n = 4000, h = (b - a) / n;
    return span(0, n).reduce((t, i) => t + (i % n === 0 ? 1 : i % 2 ? 4 : 2) * f(a + i * h), 0) * h / 3;
  };
  const all = sum(-Infinity, Infinity);
  return (a, b) => sum(a, b) / all;
};
const b = 671088641 / 64, s = 10485761, s2 = s ** 2; // below 2^53

// Each bound is exceeded with a probability below 2.5e-7, so that one is with 1e-6; seeds are fixed.
// A broken twin is what a page would have written: it rounds a number with a floating point, which
// at a wide law is the same law, so that twins of those have half the noise.
const u = () => (Number(new DataView(crypto.getRandomValues(new Uint8Array(8)).buffer).getBigUint64(0) >> 11n)
  + 0.5) / 2 ** 53;
const floating = {
  laplace: (scale) => Math.round((u() < 0.5 ? -1 : 1) * scale * Math.log(u())),
  gaussian: (variance) => Math.round(Math.sqrt(-2 * variance * Math.log(u())) * Math.cos(2 * Math.PI * u())),
};
for (const [law, fraction, edges, mass, bound, twin] of [
  ['laplace', '5/2', span(-18, 19), laplace(2.5), 101, () => floating.laplace(2.5)],
  ['laplace', '671088641/64', span(-8, 8, b / 2).map(Math.round), laplace(b), 66, () => floating.laplace(b / 2)],
  ['gaussian', '1/2', span(-2, 3), gaussian(0.5), 45, () => floating.gaussian(0.5)],
  ['gaussian', `${s2}/1`, span(-6, 6, s / 2).map(Math.round), gaussian(s2), 59, () => floating.gaussian(s2 / 2)],
]) {
  seeded(law + fraction.length);
  const x = chi(() => Number(noise(law, fraction)), edges, mass);
  assert.ok(x < bound, `${law} ${fraction}: χ² is ${x} at ${edges.length} degrees, bound ${bound}`);
  const broken = chi(twin, edges, mass);
  assert.ok(broken > bound, `the broken twin of ${law} ${fraction} is not caught: ${broken}`);
  process.stderr.write(`${law} ${fraction}: χ² ${x} at ${edges.length} degrees, of the twin ${broken}\n`);
}
step('noise has its exact law');
