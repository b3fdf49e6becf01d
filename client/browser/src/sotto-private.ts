// Sotto in a page, where nobody sees the rewards: which arm a visitor gets, and one report of what
// came of it, at a time that was fixed before anything came of it.
//
// Whoever serves this file is trusted with the rewards: the page itself or the helper, and never the
// leader alone. A page that pins its hash (integrity) trusts what it has pinned.
import { base64url, unbase64url } from './bytes.ts';
import { report as reportOf } from './dap.ts';
import { parseConfig, parseConfigs } from './hpke.ts';
import { draw, round, steps } from './noise.ts';

/** The law of a noise. */
export type Law = 'laplace' | 'gaussian';

/**
 * Draws from a law, exactly: Laplace of scale num/den, P(x) ∝ exp(−|x|·den/num), or Gaussian with
 * num/den for a variance, P(x) ∝ exp(−x²·den/(2·num)). fraction is "num/den", both from 1 to 2⁶⁴.
 */
export const noise: (law: Law, fraction: string) => bigint = draw;

/**
 * What a page believes of an experiment, whatever its service says. helper is the helper's key as
 * the declaration has it (helper.key), and task is what the helper prints beside the experiment's name:
 * one key serves all tasks of a helper, and the noise is that of the task. Of local, law and noise are
 * what each visitor adds before anything leaves the browser.
 */
export type Pin =
  | { trust: 'two-server'; helper: string; task: string }
  | { trust: 'local'; law: Law; noise: string };

/** How a decision is to be reported, as its answer says. */
export interface Terms {
  trust: string;
  /** The decision, to whoever counts its report. */
  ticket: string;
  /** In how many milliseconds the report is sent, whatever has happened by then. */
  after_ms: number;
  range: [number, number];
  /** What is reported if nothing has come. */
  default: number;
  law?: Law;
  noise?: string;
  task?: string;
  time?: number;
  grid?: number;
}

/** Where what is to be sent is kept until its time: the part of localStorage that is needed. */
export interface Store {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

export interface Options {
  /** The address of the leader. */
  leader: string | URL;
  /** A key of the scope browser. */
  key: string;
  /** By the experiment's name. */
  pins: Record<string, Pin>;
  /** localStorage if not given. */
  store?: Store;
}

export interface Ask {
  /** A unit that the page's server has signed; else the visitor is who the leader's cookie names. */
  unitToken?: string;
  signal?: AbortSignal;
}

export interface Decision {
  experiment: string;
  decision: string | null;
  arm: string;
  value?: unknown;
  propensity: number;
  expires_at: string | null;
  reason: string;
}

/** A report that is to be sent. */
interface Pending {
  decision: string;
  leader: string;
  experiment: string;
  key: string;
  /** When it is to be sent, in milliseconds since 1970: no outcome is taken from then on. */
  due: number;
  /** When it is tried next. */
  at: number;
  /** How often nobody answered. */
  tries: number;
  terms: Terms;
  pin: Pin;
  outcome?: number;
  /** What is sent, once it has been made: the same each time. */
  body?: string;
}

/** A report that has been sent. */
interface Sent { decision: string; due: number; sent: true }

type Entry = Pending | Sent;

/** How long an entry is kept after its time, in milliseconds. */
const remembered = 90 * 86_400_000;

const prefix = 'sotto ';

/** Visits what is kept. What is not ours, or damaged, is left alone. */
function* entries(store: Store): Generator<[string, Entry]> {
  const keys = Array.from({ length: store.length }, (_, i) => store.key(i));
  for (const key of keys) {
    const entry = key?.startsWith(prefix) ? read(store, key) : undefined;
    if (key && entry) yield [key, entry];
  }
}

function read(store: Store, key: string): Entry | undefined {
  try {
    return JSON.parse(store.getItem(key) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

const write = (store: Store, key: string, entry: Entry) => store.setItem(key, JSON.stringify(entry));

const post = (url: URL, type: string, body: BodyInit) => fetch(url, { method: 'POST', body,
  headers: { 'Content-Type': type }, credentials: 'omit', keepalive: true });

/** Whether an answer is one, so that the report is not sent again. */
const final = (status: number) => status < 500 && status !== 408 && status !== 429;

/** Makes what is sent for an entry. Its randomness is drawn here, once. */
async function make(e: Pending): Promise<string> {
  const { range: [lo, hi], default: otherwise } = e.terms;
  const share = Math.min(Math.max(((e.outcome ?? otherwise) - lo) / (hi - lo), 0), 1);
  if (e.pin.trust === 'local') {
    const message = BigInt(steps(share)) + noise(e.pin.law, e.pin.noise);
    return `{"reports":[{"ticket":"${e.terms.ticket}","message":${message}}]}`;
  }
  const { task = '', time = 0, grid = 0, ticket } = e.terms;
  const said = await fetch(new URL('hpke_config', e.leader), { credentials: 'omit' });
  if (!said.ok) throw new Error('sotto: the leader does not say its key');
  const leader = parseConfigs(new Uint8Array(await said.arrayBuffer()), 'key of the leader');
  return base64url(await reportOf({ task, time, grid, ticket }, leader,
    parseConfig(e.pin.helper, 'key of the helper'), round(share, grid)));
}

/** Sends an entry, alone among all pages of the site. */
async function send(store: Store, key: string): Promise<void> {
  await navigator.locks.request(key, { ifAvailable: true }, async (lock) => {
    const e = lock ? read(store, key) : undefined;
    if (!e || 'sent' in e || e.at > Date.now()) return;
    try {
      if (e.body === undefined) {
        e.body = await make(e);
        delete e.outcome;
        write(store, key, e); // before it is sent, so that it is never made again
      }
      const answer = e.pin.trust === 'local'
        ? await post(new URL(`v1/experiments/${encodeURIComponent(e.experiment)}/reports?key=${
          encodeURIComponent(e.key)}`, e.leader), 'text/plain', e.body)
        : await post(new URL(`tasks/${e.terms.task}/reports`, e.leader), 'application/dap-upload-req',
          unbase64url(e.body, 'report'));
      if (final(answer.status)) {
        write(store, key, { decision: e.decision, due: e.due, sent: true });
        return;
      }
    } catch {
      // Nobody answered. Nothing is said of it, here or in a console: it could tell what was sent.
    }
    e.at = Date.now() + Math.min(1000 * 2 ** e.tries++, 300_000);
    write(store, key, e);
  });
}

const timers = new WeakMap<Store, ReturnType<typeof setTimeout>>();

/**
 * Sends what is due of what pages of this site have kept, and waits for the rest. Every page of the
 * site that has this module should call it, or connect, which does.
 */
export function resume(store: Store = kept()): void {
  clearTimeout(timers.get(store));
  const now = Date.now();
  let next = Infinity;
  const due: Promise<void>[] = [];
  for (const [key, e] of entries(store)) {
    if (now - e.due > remembered) {
      store.removeItem(key);
    } else if ('sent' in e) {
      continue;
    } else if (e.at <= now) {
      due.push(send(store, key));
    } else {
      next = Math.min(next, e.at);
    }
  }
  if (due.length > 0) {
    void Promise.allSettled(due).then(() => wait(store, 1000));
  }
  if (next < Infinity) wait(store, next - now);
}

/** Looks again, an hour from now at the latest: clocks are set. */
function wait(store: Store, ms: number) {
  clearTimeout(timers.get(store));
  timers.set(store, setTimeout(() => resume(store), Math.min(ms, 3_600_000)));
}

/** localStorage, or where a page has none, what lasts as long as the page. */
function kept(): Store {
  try {
    return localStorage;
  } catch {
    return memory;
  }
}

/** A store that lasts as long as the page. */
export function newMemory(): Store {
  const m = new Map<string, string>();
  return {
    get length() { return m.size; },
    key: (i) => [...m.keys()][i] ?? null,
    getItem: (k) => m.get(k) ?? null,
    setItem: (k, v) => { m.set(k, v); },
    removeItem: (k) => { m.delete(k); },
  };
}

const memory = newMemory();

/** Why a decision is not to be reported as its answer says, if so. */
function differs(t: Terms, pin: Pin): string | undefined {
  const power = (g: unknown) => typeof g === 'number' && Number.isInteger(Math.log2(g)) && g >= 1 && g <= 2 ** 20;
  if (t.trust !== pin.trust) return 'trust';
  if (pin.trust === 'local') {
    return t.law !== pin.law ? 'law' : t.noise !== pin.noise ? 'noise' : undefined;
  }
  if (t.task !== pin.task) return 'task';
  return power(t.grid) ? undefined : 'grid';
}

/** Why terms are no terms, if so. */
function malformed(t: Terms): string | undefined {
  const finite = (x: unknown) => typeof x === 'number' && Number.isFinite(x);
  if (typeof t.ticket !== 'string' || !/^[\w-]{16,1024}$/.test(t.ticket)) return 'ticket';
  if (!finite(t.after_ms) || t.after_ms < 0) return 'after_ms';
  if (!Array.isArray(t.range) || !t.range.every(finite) || !(t.range[0] < t.range[1])) return 'range';
  return finite(t.default) ? undefined : 'default';
}

/** A page's connection to a leader. */
export class Client {
  readonly #options: Options;
  readonly #store: Store;

  constructor(options: Options) {
    if (!globalThis.crypto?.subtle || !globalThis.navigator?.locks) {
      throw new Error('sotto: a secure context (HTTPS) is needed');
    }
    for (const pin of Object.values(options.pins)) {
      if (pin.trust !== 'two-server') noise(pin.law, pin.noise);
      else if (!/^[\w-]{43}$/.test(pin.task)) throw new TypeError('sotto: the pinned task must be an id of 43 characters');
      else parseConfig(pin.helper, 'key of the helper');
    }
    this.#options = { ...options, leader: new URL(options.leader, globalThis.location?.href) };
    this.#store = options.store ?? kept();
    resume(this.#store);
  }

  /**
   * The arm of a visitor. From here on one report is sent at its time, whatever happens. It rejects
   * if there is no arm to be had, or if the leader would have it reported in another way than the
   * page has pinned: show the usual arm then; nothing is reported.
   */
  async decide(experiment: string, { unitToken, signal = AbortSignal.timeout(3000) }: Ask = {}):
    Promise<Decision> {
    const pin = Object.hasOwn(this.#options.pins, experiment) ? this.#options.pins[experiment] : undefined;
    if (!pin) throw new TypeError(`sotto: ${experiment}: the page has pinned nothing of it`);
    const url = new URL(`v1/experiments/${encodeURIComponent(experiment)}/decisions?key=${
      encodeURIComponent(this.#options.key)}`, this.#options.leader);
    // As text, the browser asks nobody first whether it may ask.
    const answer = await fetch(url, { method: 'POST', signal, body: JSON.stringify({ unit_token: unitToken }),
      credentials: unitToken ? 'omit' : 'include' });
    const { report: terms, ...said } = await answer.json().catch(() => ({})) as
      Omit<Decision, 'experiment'> & { report?: Terms; detail?: string };
    if (!answer.ok || !said.arm) {
      throw new Error(`sotto: ${experiment}: ${answer.status} ${said.detail ?? 'is no answer'}`);
    }
    if (said.decision && terms) {
      const bad = malformed(terms) ?? differs(terms, pin);
      if (bad) throw new Error(`sotto: ${experiment}: the leader's ${bad} is not what the page has pinned`);
      const key = prefix + terms.ticket;
      if (!this.#store.getItem(key)) { // else a page of the site has it already
        const due = Date.now() + terms.after_ms;
        write(this.#store, key, { decision: said.decision, leader: String(this.#options.leader), experiment,
          key: this.#options.key, due, at: due, tries: 0, terms, pin });
      }
      resume(this.#store);
    }
    return { ...said, experiment };
  }

  /**
   * Keeps what came of a decision, a finite number, until the report's time; the last one counts.
   * Nothing is sent by it. decision is what decide gave, or its decision alone, on whatever page of
   * the site. False says that it does not count: the report has been sent, or there is none.
   */
  outcome(decision: Decision | string, value = 1): boolean {
    if (!Number.isFinite(value)) throw new TypeError('sotto: outcome must be a finite number');
    const token = typeof decision === 'string' ? decision : decision.decision;
    for (const [key, e] of entries(this.#store)) {
      if (e.decision !== token) continue;
      if ('sent' in e || e.due <= Date.now()) return false;
      write(this.#store, key, { ...e, outcome: value });
      return true;
    }
    return false;
  }
}

/** Connects a page to a leader, and sends what is due of what other pages have kept. */
export const connect = (options: Options): Client => new Client(options);
