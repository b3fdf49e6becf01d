// Decisions without a request, in a page or in Node: an experiment's plan says which arm a unit has.
//
//   import { follow } from 'https://bandits.example/sotto-lease.js?key=sotto_…';
//   const lease = await follow('checkout');
//   const { arm } = lease.decide({ unitToken }); // its exposure is on its way already
//
// In Node, which loads no script from an address, it is a copy of this file, and server and a key that
// names units are given: follow('checkout', { server, key }), lease.decide({ unit }).
const here = new URL(import.meta.url);
const page = typeof document === 'object';
const buckets = 10000;

const name = new Uint8Array(4096 + 8);
const view = new DataView(name.buffer);
const utf8 = new TextEncoder();

// encode puts the unit's UTF-8 into name, and gives its length.
function encode(unit) {
  for (let i = 0; i < unit.length; i++) {
    const c = unit.charCodeAt(i);
    if (c > 127 || i > 4095) {
      const { read, written } = utf8.encodeInto(unit, name);
      if (read < unit.length || written > 4096) throw new TypeError('sotto: unit is too long');
      return written;
    }
    name[i] = c;
  }
  return unit.length;
}

// bucket is that of a unit, by SipHash-2-4: of its four words a to d, capitals are the upper halves.
function bucket(key, unit) {
  const n = encode(unit);
  for (let i = n; i < (n | 7); i++) name[i] = 0;
  name[n | 7] = n;
  let a = key[0], A = key[1], b = key[2], B = key[3], c = key[4], C = key[5], d = key[6], D = key[7];
  let l = 0, h = 0, t = 0;
  for (let at = 0; at <= n + 8; at += 8) {
    const last = at > n;
    if (last) {
      c ^= 255;
    } else {
      l = view.getInt32(at, true);
      h = view.getInt32(at + 4, true);
      d ^= l;
      D ^= h;
    }
    for (let r = last ? 4 : 2; r > 0; r--) {
      a = a + b | 0;
      A = A + B + (a >>> 0 < b >>> 0 ? 1 : 0) | 0;
      t = (b << 13 | B >>> 19) ^ a;
      B = (B << 13 | b >>> 19) ^ A;
      b = t;
      t = a;
      a = A;
      A = t;
      c = c + d | 0;
      C = C + D + (c >>> 0 < d >>> 0 ? 1 : 0) | 0;
      t = (d << 16 | D >>> 16) ^ c;
      D = (D << 16 | d >>> 16) ^ C;
      d = t;
      a = a + d | 0;
      A = A + D + (a >>> 0 < d >>> 0 ? 1 : 0) | 0;
      t = (d << 21 | D >>> 11) ^ a;
      D = (D << 21 | d >>> 11) ^ A;
      d = t;
      c = c + b | 0;
      C = C + B + (c >>> 0 < b >>> 0 ? 1 : 0) | 0;
      t = (b << 17 | B >>> 15) ^ c;
      B = (B << 17 | b >>> 15) ^ C;
      b = t;
      t = c;
      c = C;
      C = t;
    }
    if (!last) {
      a ^= l;
      A ^= h;
    }
  }
  return Math.floor(((A ^ B ^ C ^ D) >>> 0) * buckets / 2 ** 32);
}

/** A plan, as GET …/plan has it, that decides: plan.arm(unit) is one of its arms, without exposure. */
export function readPlan({ salt, arms, ...plan }) {
  const k = new DataView(new ArrayBuffer(16));
  salt.match(/../g).forEach((x, i) => k.setUint8(i, parseInt(x, 16)));
  const words = [0x70736575, 0x736f6d65, 0x6e646f6d, 0x646f7261, 0x6e657261, 0x6c796765, 0x79746573, 0x74656462]
    .map((c, i) => c ^ k.getInt32(4 * (i % 4), true));
  let sum = 0;
  const ends = arms.map((a) => { sum += a.buckets; return sum; });
  if (sum !== buckets || salt.length !== 32) throw new TypeError('sotto: plan is none');
  return { ...plan, arms, until: Date.parse(plan.until), arm(unit) {
    const b = bucket(words, unit);
    let i = 0;
    while (b >= ends[i]) i++;
    return arms[i];
  } };
}

/** A store: the page's cookies. */
export const cookies = {
  getItem: (key) => document.cookie.split('; ').map((c) => c.split('='))
    .find(([k]) => k === encodeURIComponent(key))?.slice(1).map(decodeURIComponent)[0] ?? null,
  setItem(key, text) {
    document.cookie = `${encodeURIComponent(key)}=${encodeURIComponent(text)}; max-age=15552000; path=/; `
      + `samesite=lax${location.protocol === 'https:' ? '; secure' : ''}`;
  },
};

function local() {
  try {
    return page ? localStorage : null;
  } catch { return null; } // it is forbidden
}

const unitOf = (token = '') => new TextDecoder().decode(
  Uint8Array.from(atob(token.split('.')[0].replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0)));

/**
 * Follows the plan of an experiment until close() is called: {decide, load, close, plan}.
 *
 * store keeps the arm of a unit that returns: the page's localStorage if none is given, cookies, any
 * object with getItem and setItem, or a StickyBucketService of GrowthBook, of which load({ unit }) must
 * have read the unit before decide. Null keeps nothing: then a unit must not return.
 */
export async function follow(experiment, { server = here, key = here.searchParams.get('key') ?? '',
  store = local(), signal = AbortSignal.timeout(3000) } = {}) {
  const at = (path) => {
    const url = new URL(`/v1/${path}`, server);
    if (page) url.searchParams.set('key', key); // in the address, the browser sends no preflight
    return url;
  };
  const headers = page ? {} : { 'X-API-Key': key };
  const late = store?.getAssignments ? new Map() : null; // documents of a store that is asked ahead
  const id = (unit) => `gbStickyBuckets__id||${unit}`;
  const slot = `${experiment}__0`;
  const ended = new AbortController();
  let plan, ends, tag, timer;
  let told = new Set(); // units whose exposures of this plan were sent
  let queue = [];

  async function refresh(signal, wait) {
    const url = at(`experiments/${encodeURIComponent(experiment)}/plan`);
    if (wait) url.searchParams.set('wait', '15s');
    const answer = await fetch(url, { signal, headers: tag ? { ...headers, 'If-None-Match': tag } : headers });
    if (answer.status === 304) return;
    if (!answer.ok) throw new Error(`sotto: ${experiment}: ${answer.status}`);
    // What is left by the service's clock is left by this one, which may be wrong.
    const sent = Date.parse(answer.headers.get('Date')) || Date.now();
    const next = readPlan(await answer.json());
    ends = Date.now() + next.until - sent;
    tag = answer.headers.get('ETag');
    if (next.epoch !== plan?.epoch) told = new Set();
    plan = next;
  }

  // A page asks again when its plan ends, a server waits for the next one.
  async function again() {
    for (let failed = 0; !ended.signal.aborted;) {
      const rest = page ? Math.max(ends - Date.now() - 5000, 1000) : 0;
      await new Promise((next) => {
        timer = setTimeout(next, failed ? 1000 * 2 ** Math.min(failed, 6) : rest);
        timer.unref?.();
      });
      try {
        const most = AbortSignal.timeout(30000);
        await refresh(page ? most : AbortSignal.any([ended.signal, most]), !page);
        failed = Date.now() < ends ? 0 : failed + 1;
      } catch { failed++; } // what it has is good until it ends
    }
  }

  const post = (exposures) => fetch(at('exposures'), { method: 'POST', keepalive: page, headers,
    credentials: 'omit', body: JSON.stringify({ exposures }) });

  // A page sends each at once, a server those of a second: the clock decides when, and nothing else.
  function expose(one) {
    if (page) post([one]).catch(() => {});
    else queue.push(one);
  }

  async function flush() {
    for (const now = queue.splice(0); now.length > 0;) {
      const some = now.splice(0, 1000);
      const answer = await post(some).catch(() => null);
      if (!answer || answer.status === 429 || answer.status >= 500) {
        queue = [...some, ...now, ...queue].slice(0, 100000);
        return;
      }
    }
  }

  const keep = (unit, text) => {
    const doc = { attributeName: 'id', attributeValue: unit, assignments: { ...kept(unit), [slot]: text } };
    if (late) {
      late.set(unit, doc);
      Promise.resolve(store.saveAssignments(doc)).catch(() => {});
    } else store?.setItem(id(unit), JSON.stringify(doc));
  };
  const kept = (unit) => {
    try {
      return (late ? late.get(unit) : JSON.parse(store?.getItem(id(unit)) ?? '{}'))?.assignments;
    } catch { return undefined; }
  };

  await refresh(signal);
  const ticking = page ? undefined : setInterval(flush, 1000);
  ticking?.unref();
  again();
  return {
    get plan() { return plan; },

    /** Reads what a store that answers later has of a unit. */
    async load({ unit, unitToken }) {
      const of = unit ?? unitOf(unitToken);
      const doc = await store.getAssignments('id', of);
      if (doc) late.set(of, doc);
    },

    /**
     * The arm of a unit: {arm, value, epoch, propensity, reason}. The reason is split, sticky if the store
     * had it, or that of the service while nobody is assigned: static, or disabled. unitToken is a unit that the product's
     * server has signed. With consent: false it is the fallback (default): nothing is kept or sent. If it throws,
     * show the usual arm. Its exposure has left when it returns, once: it must not depend on what comes of it.
     */
    decide({ unit, unitToken, consent = true }) {
      if (ended.signal.aborted || Date.now() >= ends) throw new Error(`sotto: ${experiment}: the plan has ended`);
      if (plan.reason || !consent) {
        const { arm, value } = plan.arms.find((a) => a.arm === plan.fallback) ?? plan.arms[0];
        return { arm, value, propensity: 1, experiment, reason: consent ? plan.reason : 'default' };
      }
      const of = unit ?? unitOf(unitToken);
      if (!of || /[\uD800-\uDFFF\uFFFD]/u.test(of)) throw new TypeError('sotto: unit must be Unicode text');
      const known = kept(of)?.[slot];
      const cut = known?.lastIndexOf(':');
      const old = known && plan.arms.find((a) => a.arm === known.slice(0, cut));
      const { arm, value, buckets: n } = old ?? plan.arm(of);
      if (old) return { arm, value, experiment, epoch: Number(known.slice(cut + 1)), reason: 'sticky' };
      if (!told.has(of)) {
        told.add(of);
        expose({ experiment, targetingKey: unitToken ?? of, epoch: plan.epoch, arm });
        try {
          keep(of, `${arm}:${plan.epoch}`);
        } catch { /* it may be full, or forbidden */ }
      }
      return { arm, value, propensity: n / buckets, experiment, epoch: plan.epoch, reason: 'split' };
    },

    /** Sends what is left, and follows no more. */
    async close() {
      ended.abort();
      clearTimeout(timer);
      clearInterval(ticking);
      await flush();
    },
  };
}
