// What an experiment with contexts has learnt, read in a page: it decides without a request, and gives
// what the service gives. sotto.js imports it when its readModel is called.
const fail = (what) => { throw new TypeError(`sotto: ${what}`); };
const bytes = new TextEncoder();

// XXH64, as github.com/Cyan4973/xxHash says it.
const p = [0x9E3779B185EBCA87n, 0xC2B2AE3D27D4EB4Fn, 0x165667B19E3779F9n, 0x85EBCA77C2B2AE63n,
  0x27D4EB2F165667C5n];
const u = (x) => BigInt.asUintN(64, x);
const turn = (x, n) => u(x << n | u(x) >> 64n - n);
const round = (h, x) => u(turn(u(h + x * p[1]), 31n) * p[0]);

function xxh64(data, seed = 0n) {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let at = 0;
  let h = u(seed + p[4]);
  if (data.length >= 32) {
    const v = [seed + p[0] + p[1], seed + p[1], seed, seed - p[0]].map(u);
    for (; at + 32 <= data.length; at += 32) v.forEach((x, i) => { v[i] = round(x, view.getBigUint64(at + 8 * i, true)); });
    h = u(turn(v[0], 1n) + turn(v[1], 7n) + turn(v[2], 12n) + turn(v[3], 18n));
    for (const x of v) h = u((h ^ round(0n, x)) * p[0] + p[3]);
  }
  h = u(h + BigInt(data.length));
  for (; at + 8 <= data.length; at += 8) h = u(turn(h ^ round(0n, view.getBigUint64(at, true)), 27n) * p[0] + p[3]);
  if (at + 4 <= data.length) {
    h = u(turn(h ^ u(BigInt(view.getUint32(at, true)) * p[0]), 23n) * p[1] + p[2]);
    at += 4;
  }
  for (; at < data.length; at++) h = u(turn(h ^ u(BigInt(data[at]) * p[4]), 11n) * p[0]);
  h = u((h ^ h >> 33n) * p[1]);
  h = u((h ^ h >> 29n) * p[2]);
  return h ^ h >> 32n;
}

// bucket is where words are put by their hashes.
function bucket(hashes, { seed = 0, buckets }) {
  const view = new DataView(new ArrayBuffer(8 * hashes.length));
  hashes.forEach((h, i) => view.setBigUint64(8 * i, h, true));
  return Number(xxh64(new Uint8Array(view.buffer), BigInt(seed)) % BigInt(buckets));
}

// text is a word as the service writes it: of a number the shortest that Go has.
function text(v) {
  if (typeof v !== 'number') return String(v);
  const [digits, e] = v.toExponential().split('e');
  return e < -4 || e >= 6 ? `${digits}e${e[0]}${e.slice(1).padStart(2, '0')}` : String(v);
}

const isNumber = (f) => Boolean(f.lo || f.hi);

// value is what is given of a feature: undefined if it counts as missing.
function value(f, v, at, ignore) {
  if (v === null || v === undefined) return undefined;
  if (!['string', 'number', 'boolean'].includes(typeof v) || typeof v === 'number' && !Number.isFinite(v)) {
    fail(`${at}: is no string, finite number or boolean`);
  }
  if (isNumber(f)) {
    const { lo = 0, hi = 0 } = f;
    if (typeof v !== 'number' || !f.clip && (v < lo || v > hi)) fail(`${at}: is ${v}, must be from ${lo} to ${hi}`);
    const x = f.clip ? Math.min(Math.max(v, lo), hi) : v;
    return { place: 0, x: Math.min(Math.max((x - lo) / (hi - lo), 0), 1) };
  }
  const word = text(v);
  const hash = xxh64(bytes.encode(word));
  if (f.values) {
    const place = f.values.indexOf(word);
    if (place >= 0) return { place, x: 1, hash };
    return ignore ? undefined : fail(`${at}: is ${word}, must be one of ${f.values.join(', ')}`);
  }
  return { place: f.buckets ? bucket([hash], f) : 0, x: 1, hash };
}

// read puts what is given of an object, by its features' paths, into values.
function read(given, features, at, ignore, into, path = '') {
  for (const [name, v] of Object.entries(given ?? {})) {
    const whole = path + name;
    if (v !== null && typeof v === 'object' && !Array.isArray(v)) {
      read(v, features, at, ignore, into, `${whole}.`);
      continue;
    }
    const f = features.get(whole);
    if (!f) {
      if (!ignore) fail(`${at}.${whole}: is not declared`);
      continue;
    }
    if (into.has(f)) fail(`${at}.${whole}: is given twice`);
    into.set(f, value(f, v, `${at}.${whole}`, ignore));
  }
}

/**
 * Reads what GET …/model gives, as text or an object. best(context, actions, excluded) is which of the
 * actions ({id, features}) the service would give when what was learnt is kept, none whose id is excluded.
 */
export function readModel(json) {
  let model = json;
  if (typeof json === 'string') {
    try { model = JSON.parse(json); } catch { fail('model: is no JSON'); }
  }
  if (model?.format !== 'sotto-model/1') fail(`model: format is ${model?.format}, must be sotto-model/1`);
  const { map, theta, unit } = model;
  if (!map || !Array.isArray(theta) || !theta.every(Number.isFinite) || !(unit > 0 && unit <= 2 ** 20)) {
    fail('model: map, unit or theta is missing, or no such');
  }
  const { context = [], action = [], cross = [], ignore = false } = map;
  const id = { cross_only: true, ...map.id, name: 'id' };
  if (map.id && !map.id.cross_only) id.cross_only = false;
  const all = new Map([...context, ...action, id].map((f) => [f.name, f]));
  const names = [context, action].map((fs) => new Map(fs.map((f) => [f.name, f])));
  const width = (f) => isNumber(f) ? 1 : f.values?.length ?? f.buckets ?? 0;
  let dim = 1;
  const block = (n) => (dim += n) - n;
  const places = [...all.values()].filter((f) => !f.cross_only).map((f) => [f, block(width(f))]);
  const crosses = cross.map((c) => {
    const of = c.of.map((n) => all.get(n) ?? fail(`model: map.cross: ${n} is no feature`));
    return { ...c, of, at: block(c.buckets ?? of.reduce((n, f) => n * width(f), 1)) };
  });
  if (theta.length !== dim) fail(`model: theta has ${theta.length} numbers, must have ${dim}`);
  const score = (values) => {
    const vector = new Float64Array(dim);
    const set = (at, x) => { vector[at] = Math.trunc(x * unit) / 2 ** 20; };
    set(0, 1);
    for (const [f, at] of places) {
      const v = values.get(f);
      if (v) set(at + v.place, v.x);
    }
    for (const c of crosses) {
      const vs = c.of.map((f) => values.get(f));
      if (!vs.every(Boolean)) continue;
      const place = c.buckets ? bucket(vs.filter((v) => v.hash !== undefined).map((v) => v.hash), c)
        : vs.reduce((n, v, i) => n * width(c.of[i]) + v.place, 0);
      set(c.at + place, vs.reduce((x, v) => x * v.x, 1));
    }
    return theta.reduce((sum, t, i) => sum + t * vector[i], 0);
  };
  return { ...model,
    best(given, actions, excluded = []) {
      if (!actions?.length || actions.length > map.actions) fail(`actions: has ${actions?.length}, must be from 1 to ${map.actions}`);
      const shared = new Map();
      read(given, names[0], 'context', ignore, shared);
      const ids = new Set();
      let best;
      let top = -Infinity;
      actions.forEach((a, i) => {
        if (typeof a.id !== 'string' || !a.id || ids.has(a.id)) fail(`actions[${i}].id: is no text, empty, or there before`);
        ids.add(a.id);
        const values = new Map(shared);
        read(a.features, names[1], `actions[${i}]`, ignore, values);
        values.set(id, value(id, a.id, `actions[${i}].id`, ignore));
        const s = score(values);
        if (!excluded.includes(a.id) && (!best || s > top)) [best, top] = [a, s];
      });
      return best ?? fail(`excluded: has all ${actions.length} actions, must leave one`);
    } };
}
