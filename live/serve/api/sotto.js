// Sotto in a page: which arm a visitor gets, and what came of it.
//
//   import { decide, reward } from 'https://bandits.example/sotto.js?key=sotto_…';
//
// The key is of the scope browser: all can read it. This file's origin is the service.
const here = new URL(import.meta.url);
const key = here.searchParams.get('key') ?? '';

const at = (path) => new URL(`v1/${path}?key=${encodeURIComponent(key)}`, here);
const to = (experiment, what) => at(`experiments/${encodeURIComponent(experiment)}/${what}`);

/**
 * The arm of a visitor: {decision, arm, value, propensity, expires_at, reason}. If it rejects, show
 * the usual arm, and report nothing. unitToken is a unit that your server signed; else the service's
 * cookie names the visitor, for pages of its site. With consent false neither is sent, and the
 * fallback comes. context is public facts. A signal ends the waiting, else 3 s.
 */
export async function decide(experiment, { unitToken, context, consent = true,
  signal = AbortSignal.timeout(3000) } = {}) {
  // no preflight
  const answer = await fetch(to(experiment, 'decisions'), { method: 'POST', signal,
    body: JSON.stringify({ unit_token: consent ? unitToken : '', context, consent: !!consent }),
    credentials: unitToken || !consent ? 'omit' : 'include' });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok || !said.arm) {
    throw new Error(`sotto: ${experiment}: ${answer.status} ${said.detail ?? 'no answer'}`);
  }
  return { ...said, experiment };
}

// post sends, even if the page is left.
function post(url, report, credentials = 'omit') {
  const body = JSON.stringify(report);
  if (!navigator.sendBeacon?.(url, body)) {
    fetch(url, { method: 'POST', body, keepalive: true, credentials }).catch(() => {});
  }
  return true;
}

const send = ({ experiment, decision }, what, report) =>
  !!decision && post(to(experiment, what), { decision, ...report });

/**
 * Reports the reward of what decide gave, a finite number or null for none. False: it does not
 * count; nothing was sent. Where reports add up, an id counts once.
 */
export function reward(decision, value = 1, { id, metrics } = {}) {
  if (![value ?? 0, ...Object.values(metrics ?? {})].every(Number.isFinite)) {
    throw new TypeError('sotto: reward must be a finite number');
  }
  return send(decision, 'rewards', { id, reward: value ?? undefined, metrics });
}

/** Reports an event to experiments that declare it; fields are value, and others by name. */
export const track = (name, { unitToken, ...fields } = {}) => post(at('track'),
  { events: [{ id: crypto.randomUUID?.(), ...fields, name, targetingKey: unitToken }] },
  unitToken ? 'omit' : 'include');

/** Says that the visitor meets what decide gave, or with false will not (exposure: activate). */
export const activate = (decision, shown = true) => send(decision, 'activations', { shown });

/** Reads GET …/model: (await readModel(json)).best(context, actions). */
export const readModel = async (json) =>
  (await import(new URL('sotto-model.js', here))).readModel(json);
