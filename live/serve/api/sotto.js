// Sotto in a page: which arm a visitor gets, and what came of it.
//
//   import { decide, reward } from 'https://bandits.example/sotto.js?key=sotto_…';
//
// The key is one of the scope browser, since everybody can read it. The service is where this file
// came from.
const here = new URL(import.meta.url);
const key = here.searchParams.get('key') ?? '';

const to = (experiment, what) => new URL(
  `v1/experiments/${encodeURIComponent(experiment)}/${what}?key=${encodeURIComponent(key)}`, here);

/**
 * The arm of a visitor: {decision, arm, value, propensity, expires_at, reason}. It rejects if there
 * is none to be had: show the usual arm then, and report nothing.
 *
 * unitToken is a unit that your server has signed. Without one the visitor is who the service's own
 * cookie names, for pages of the service's site. context is public facts for experiments that are
 * for some. A signal ends the waiting, after 3 s if none is given.
 */
export async function decide(experiment, { unitToken, context,
  signal = AbortSignal.timeout(3000) } = {}) {
  // As text, the browser asks nobody first whether it may ask.
  const answer = await fetch(to(experiment, 'decisions'), { method: 'POST', signal,
    body: JSON.stringify({ unit_token: unitToken || undefined, context }),
    credentials: unitToken ? 'omit' : 'include' });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok || !said.arm) {
    throw new Error(`sotto: ${experiment}: ${answer.status} ${said.detail ?? 'is no answer'}`);
  }
  return { ...said, experiment };
}

// send sends a report even if the page is left; nobody waits for the answer.
function send({ experiment, decision }, what, report) {
  if (!decision) return false;
  const url = to(experiment, what);
  const body = JSON.stringify({ decision, ...report });
  if (!navigator.sendBeacon?.(url, body)) {
    fetch(url, { method: 'POST', body, keepalive: true, credentials: 'omit' }).catch(() => {});
  }
  return true;
}

/**
 * Reports the reward of what decide gave, a finite number; null leaves it out. False says that the
 * decision does not count, so that nothing was sent.
 *
 * Where reports add up, an id names one, such as an order's number, and counts once. metrics are
 * numbers by their names.
 */
export function reward(decision, value = 1, { id, metrics } = {}) {
  if (![value ?? 0, ...Object.values(metrics ?? {})].every(Number.isFinite)) {
    throw new TypeError('sotto: reward must be a finite number');
  }
  value ??= undefined;
  return send(decision, 'rewards', { id, reward: value, metrics });
}

/**
 * Says that the visitor meets what decide gave, or, with false, that she will not: for experiments
 * with exposure: activate, and before its outcome can be known.
 */
export const activate = (decision, shown = true) => send(decision, 'activations', { shown });

/** Reads GET …/model, to decide without a request: (await readModel(json)).best(context, actions). */
export const readModel = async (json) =>
  (await import(new URL('sotto-model.js', here))).readModel(json);
