// Clients that decide by a plan, without a request: ours, GrowthBook's and flagd's in process. Of theirs the address and
// the key have changed, flagd has a file, and its exposures go by a hook. TestWeightsClients starts the
// service, which passes time when it is told to, and says where it is by the environment.
import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { GrowthBookClient, GrowthBook, LocalStorageStickyBucketService } from '@growthbook/growthbook';
import { growthbookTrackingPlugin } from '@growthbook/growthbook/plugins';
import { FlagdProvider } from '@openfeature/flagd-provider';
import { OpenFeature } from '@openfeature/server-sdk';

const { SOTTO_SERVER: server, SOTTO_KEY: key, SOTTO_REWARDS: rewards } = process.env;
const dir = await mkdtemp(join(tmpdir(), 'sotto-'));

async function ask(path, body, by = key) {
  const answer = await fetch(server + path, { method: body ? 'POST' : 'GET', headers: { 'X-API-Key': by },
    body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
}
const pass = (time) => ask(`/test/pass?d=${time}`);
const track = (...units) => ask('/v1/track',
  { events: units.map(([targetingKey, value]) => ({ name: 'checkout', targetingKey, value })) }, rewards);
const until = async (what, holds) => {
  for (let i = 0; i < 2000; i++) {
    if (await holds()) return;
    await new Promise((next) => { setTimeout(next, 10); });
  }
  assert.fail(what);
};

// flagd: the file appears whole, and is read again when it has changed.
const file = join(dir, 'flags.json');
async function flags() {
  await writeFile(`${file}.new`, JSON.stringify(await ask('/v1/flagd')));
  await rename(`${file}.new`, file);
}
await flags();
await OpenFeature.setProviderAndWait(new FlagdProvider({ resolverType: 'in-process', offlineFlagSourcePath: file }));
const flagd = OpenFeature.getClient();
let sent = Promise.resolve();
flagd.addHooks({
  after({ context, flagKey }, { reason, variant, flagMetadata: { epoch } }) {
    if (reason !== 'TARGETING_MATCH' || !epoch) return;
    const exposures = [{ experiment: flagKey, targetingKey: context.targetingKey, epoch, arm: variant, hash: 'flagd' }];
    sent = fetch(`${server}/v1/exposures`, { method: 'POST', headers: { 'X-API-Key': key },
      body: JSON.stringify({ exposures }) });
  },
});
const first = await flagd.getStringDetails('shop', 'none', { targetingKey: 'flagd 1' });
assert.equal(first.reason, 'TARGETING_MATCH');
assert.equal((await sent).status, 202);
assert.equal((await flagd.getStringDetails('shop', 'none', {})).reason, 'DEFAULT');
await track(['flagd 1', 0.5], ['flagd 2', 1]); // an event makes no exposure
console.log('flagd decides');

// Ours, as Node loads it.
await copyFile('../../sotto-lease.js', join(dir, 'sotto-lease.mjs'));
const { follow } = await import(pathToFileURL(join(dir, 'sotto-lease.mjs')));
const kept = new Map();
const store = { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => { kept.set(k, v); } };
const lease = await follow('shop', { server, key, store });
const units = Array.from({ length: 40 }, (_, i) => `ours ${i} – Zoë`);
const was = units.map((unit) => lease.decide({ unit }));
assert.deepEqual([...new Set(was.map((d) => d.reason))], ['split']);
assert.equal(new Set(was.map((d) => d.arm)).size, 2);
for (const unit of ['', '\ud800', 'x'.repeat(4097)]) assert.throws(() => lease.decide({ unit }), TypeError);
await lease.close();
assert.throws(() => lease.decide({ unit: 'new' }), /has ended/);
await track(...units.map((unit) => [unit, 0.25]));
console.log('ours decides');

// GrowthBook, by its plugin.
const options = { apiHost: server, clientKey: key };
const many = new GrowthBookClient({ ...options, plugins: [growthbookTrackingPlugin({ ingestorHost: server })] });
await many.init();
const posted = [];
const real = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const answer = await real(...request);
  if (String(request[0]).includes('/track')) posted.push(answer.status);
  return answer;
};
const arms = [];
for (let i = 0; i < 40; i++) {
  const user = many.createScopedInstance({ attributes: { id: `gb ${i} – Zoë` } });
  arms.push(user.evalFeature('shop').experimentResult.key);
}
assert.equal(new Set(arms).size, 2);
await until('a batch of exposures', () => posted.length === 1);
assert.deepEqual(posted, [202]);
await track(...arms.map((_, i) => [`gb ${i} – Zoë`, 0.125]));
console.log('growthbook decides by its plugin');

// And by a tracking callback, with sticky buckets, over epochs.
const docs = new Map();
const localStorage = { getItem: async (k) => docs.get(k) ?? null, setItem: async (k, v) => { docs.set(k, v); } };
const calls = [];
async function visit(id) {
  const gb = new GrowthBook({ ...options, attributes: { id },
    stickyBucketService: new LocalStorageStickyBucketService({ localStorage }),
    trackingCallback(experiment, { key: variation, hashValue, stickyBucketUsed }) {
      if (stickyBucketUsed) return; // it was sent when it was made, or is lost
      const cut = variation.lastIndexOf(':');
      calls.push(ask('/v1/exposures', { exposures: [{ experiment: experiment.key, targetingKey: hashValue,
        epoch: Number(variation.slice(cut + 1)), arm: variation.slice(0, cut), hash: 'growthbook' }] }));
    } });
  await gb.init({ skipCache: true });
  const { key: variation, stickyBucketUsed } = gb.evalFeature('shop').experimentResult;
  gb.destroy();
  return [variation, stickyBucketUsed];
}
const visitors = Array.from({ length: 20 }, (_, i) => `visitor ${i}`);
const before = await Promise.all(visitors.map(visit));
assert.ok(before.every(([, sticky]) => !sticky));
await Promise.all(calls);
assert.equal(calls.length, 20);
await track(...visitors.map((id) => [id, 0.0625]));

// Half a lease later there is another plan. Who returns keeps the arm, and somebody else's differ.
await pass('11s');
await flags();
const { epoch } = await ask('/v1/experiments/shop/plan');
const after = await Promise.all(visitors.map(visit));
assert.deepEqual(after, before.map(([variation]) => [variation, true]));
assert.equal(calls.length, 20);
docs.clear();
const anew = await Promise.all(visitors.map(visit));
assert.ok(anew.every(([variation]) => variation.endsWith(`:${epoch}`)));
assert.ok(anew.some(([v], i) => v.split(':')[0] !== before[i][0].split(':')[0]));
await Promise.all(calls); // a unit's first exposure counts
console.log('growthbook decides with sticky buckets');

const again = await follow('shop', { server, key, store });
assert.deepEqual(units.map((unit) => again.decide({ unit })).map((d) => [d.arm, d.reason]),
  was.map((d) => [d.arm, 'sticky']));
const service = { getAssignments: async () => JSON.parse(kept.get('gbStickyBuckets__id||ours 0 – Zoë')),
  saveAssignments: async () => {} };
const third = await follow('shop', { server, key, store: service });
await third.load({ unit: units[0] });
assert.equal(third.decide({ unit: units[0] }).reason, 'sticky');
await Promise.all([again.close(), third.close()]);
console.log('ours keeps arms');

await until('another epoch in the file', async () => {
  const { flagMetadata } = await flagd.getStringDetails('shop', 'none', {});
  return flagMetadata.epoch === epoch;
});
await flagd.getStringDetails('shop', 'none', { targetingKey: 'flagd 3' });
assert.equal((await sent).status, 202);
await track(['flagd 3', 0.03125]);
await OpenFeature.close();
console.log('flagd reads the next plan');
process.exit(0);
