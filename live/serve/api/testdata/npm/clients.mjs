// OpenFeature's own clients ask a running service. TestOpenFeatureClients starts it, with the
// experiments color, on, size, bare, style and some running, and says where it is by the environment.
import assert from 'node:assert/strict';
import { OFREPProvider } from '@openfeature/ofrep-provider';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';
import { OpenFeature, ErrorCode } from '@openfeature/server-sdk';
import { OpenFeature as Web, ProviderEvents, ProviderStatus } from '@openfeature/web-sdk';

const { SOTTO_SERVER: baseUrl, SOTTO_KEY: key, SOTTO_ADMIN: admin } = process.env;
const arms = {
  color: { red: '#c00', blue: '#00c' },
  on: { no: false, yes: true },
  size: { small: 1.5, large: 2 },
  bare: { classic: 'classic', onepage: 'onepage' }, // declared without values
  style: { plain: { font: 'serif', size: 3 }, loud: { font: 'sans', size: 9 } },
};
const done = [];
const step = (name) => done.push(name);

async function post(path, body, as = admin) {
  const r = await fetch(baseUrl + path, { method: 'POST', headers: { 'X-API-Key': as },
    body: JSON.stringify(body) });
  assert.equal(r.status, 200, path);
  return r.json();
}

async function until(what, test) {
  for (let i = 0; i < 500; i++) {
    if (await test()) return;
    await new Promise((r) => setTimeout(r, 20));
  }
  assert.fail(`${what} did not come`);
}

// ---- a server: each evaluation is a request
const statuses = [];
const provider = (headers) => new OFREPProvider({ baseUrl, headers,
  fetchImplementation: async (...request) => {
    const r = await fetch(...request);
    statuses.push(r.status);
    return r;
  } });
await OpenFeature.setProviderAndWait('server', provider([['Authorization', `Bearer ${key}`]]));
const server = OpenFeature.getClient('server');
const evaluate = (flag, context, client = server) => ({
  color: () => client.getStringDetails('color', 'none', context),
  on: () => client.getBooleanDetails('on', false, context),
  size: () => client.getNumberDetails('size', 0, context),
  bare: () => client.getStringDetails('bare', 'none', context),
  style: () => client.getObjectDetails('style', {}, context),
})[flag]();

const seen = {};
for (const flag of Object.keys(arms)) {
  for (const targetingKey of ['ann', 'bob', 'ann']) {
    const d = await evaluate(flag, { targetingKey, plan: 'free', nested: { x: [1] } });
    assert.equal(d.errorCode, undefined, `${flag}: ${d.errorMessage}`);
    assert.deepEqual(d.value, arms[flag][d.variant]);
    assert.equal(d.reason, 'SPLIT');
    assert.match(d.flagMetadata.decision, /^[-\w]{58}$/);
    assert.ok(d.flagMetadata.propensity > 0 && d.flagMetadata.propensity <= 1);
    assert.ok(!Number.isNaN(Date.parse(d.flagMetadata.expires_at)));
    const of = `${flag} ${targetingKey}`;
    if (seen[of]) assert.deepEqual(d, seen[of], 'asked again, it is another decision');
    seen[of] = d;
    const answer = await post(`/v1/experiments/${flag}/rewards`,
      { decision: d.flagMetadata.decision, reward: 1 }, key);
    assert.deepEqual(answer, { status: 'accepted' });
  }
}
for (const [country, reason] of [['NL', 'SPLIT'], ['DE', 'DEFAULT']]) {
  const d = await server.getBooleanDetails('some', false, { targetingKey: country, country });
  assert.deepEqual([d.reason, d.errorCode], [reason, undefined]);
  assert.equal(d.flagMetadata.decision === undefined, reason === 'DEFAULT');
}
step('server evaluates');

for (const [code, flag, context] of [
  [ErrorCode.FLAG_NOT_FOUND, 'none', { targetingKey: 'ann' }],
  [ErrorCode.TARGETING_KEY_MISSING, 'color', {}],
  [ErrorCode.INVALID_CONTEXT, 'color', { targetingKey: 'x'.repeat(5000) }],
  [ErrorCode.TYPE_MISMATCH, 'on', { targetingKey: 'ann' }],
]) {
  const d = await server.getStringDetails(flag, 'usual', context);
  assert.equal(d.errorCode, code, `${flag}: ${d.errorMessage}`);
  assert.equal(d.value, 'usual');
  assert.equal(d.reason, 'ERROR');
  assert.equal(d.flagMetadata.decision, undefined, 'who saw the default would report');
}
await OpenFeature.setProviderAndWait('stranger', provider([['X-API-Key', 'sotto_wrong']]));
const refused = await OpenFeature.getClient('stranger').getStringDetails('color', 'usual',
  { targetingKey: 'ann' });
assert.deepEqual([refused.value, refused.reason, refused.errorCode, statuses.at(-1)],
  ['usual', 'ERROR', ErrorCode.GENERAL, 401]);
step('server is told errors');

// ---- a page: one request evaluates all flags, and asks again with the ETag
const answers = [];
const web = (apiKey) => new OFREPWebProvider({
  baseUrl, headers: [['X-API-Key', apiKey]], cacheMode: 'disabled', pollInterval: 50,
  fetchImplementation: async (...request) => {
    const asked = new Request(...request);
    const r = await fetch(asked);
    answers.push({ status: r.status, etag: r.headers.get('ETag'),
      ifNoneMatch: asked.headers.get('If-None-Match') });
    return r;
  },
});
await Web.setContext('page', { targetingKey: 'ann' });
await Web.setProviderAndWait('page', web(key));
const page = Web.getClient('page');
for (const flag of Object.keys(arms)) {
  assert.deepEqual(evaluate(flag, undefined, page), seen[`${flag} ann`], 'a page sees another arm');
}
const other = page.getBooleanDetails('bare', false); // its value is text
assert.deepEqual([other.value, other.errorCode], [false, ErrorCode.TYPE_MISMATCH]);
assert.equal(typeof other.flagMetadata.decision, 'string'); // of an arm that is not shown: see docs/clients.md
await until('a 304', () => answers.filter((a) => a.status === 304).length >= 2);
assert.equal(answers[0].status, 200);
assert.equal(answers[0].ifNoneMatch, null);
for (const a of answers.slice(1)) {
  assert.equal(a.status, 304);
  assert.equal(a.ifNoneMatch, answers[0].etag);
}
step('page evaluates all, with ETags');

let changes = 0;
page.addHandler(ProviderEvents.ConfigurationChanged, () => { changes++; });
await post('/v1/experiments/color/stop', { arm: 'blue', now: true, confirm: 'color' });
await until('the winner', () => page.getStringDetails('color', 'none').reason === 'STATIC');
assert.equal(changes, 1);
const won = page.getStringDetails('color', 'none');
assert.deepEqual([won.value, won.variant, won.flagMetadata.decision], ['#00c', 'blue', undefined]);
const same = await evaluate('color', { targetingKey: 'nobody' });
assert.deepEqual([same.value, same.variant, same.reason, same.flagMetadata.decision],
  ['#00c', 'blue', 'STATIC', undefined]);
assert.deepEqual(page.getBooleanDetails('on', false), seen['on ann'], 'another flag has changed');
step('the winner is STATIC');

await post('/v1/experiments/size/pause', {});
assert.equal(page.getNumberDetails('size', 0).variant, seen['size ann'].variant);
await Web.setContext('page', { targetingKey: 'new' });
const off = page.getNumberDetails('size', 0);
assert.deepEqual([off.reason, off.flagMetadata.decision], ['DISABLED', undefined]);
assert.equal(off.value, arms.size[off.variant]);
assert.equal((await evaluate('size', { targetingKey: 'newer' })).reason, 'DISABLED');
assert.equal(page.getStringDetails('none', 'usual').errorCode, ErrorCode.FLAG_NOT_FOUND);
step('what is paused is DISABLED');

await Web.setContext('stranger', { targetingKey: 'ann' });
await assert.rejects(Web.setProviderAndWait('stranger', web('sotto_wrong')));
assert.equal(Web.getClient('stranger').providerStatus, ProviderStatus.FATAL);
assert.equal(answers.at(-1).status, 401);
step('page is told 401');

await OpenFeature.close();
await Web.close();
console.log(done.join('\n'));
process.exit(0);
