// The clients of Segment and of RudderStack report to a running service: of them the address and the
// write key have changed. TestAnalyticsClients starts that, and says where it is by the environment.
import assert from 'node:assert/strict';
import { Analytics } from '@segment/analytics-node';
import Rudder from '@rudderstack/rudder-sdk-node';

const { SOTTO_SERVER: host, SOTTO_KEY: writeKey } = process.env;

async function bySegment(key) {
  const client = new Analytics({ writeKey: key, host, maxRetries: 0 });
  const errors = [];
  client.on('error', (e) => errors.push(e));
  client.identify({ userId: 'unit 0', traits: { plan: 'pro' } });
  client.track({ userId: 'unit 0', event: 'checkout', properties: { total: 2, value: 0.5, sku: 'x' } });
  client.track({ userId: 'unit 0', event: 'checkout', properties: { total: 1 } });
  client.track({ anonymousId: 'unit 1', event: 'checkout' });
  client.page({ userId: 'unit 2', name: 'checkout' });
  client.track({ userId: 'unit 3', event: 'checkout', timestamp: new Date(Date.now() - 86400e3) });
  await client.closeAndFlush();
  return errors;
}

assert.deepEqual(await bySegment(writeKey), []);
const [refused] = await bySegment('sotto_unknown');
assert.match(String(refused.reason), /401/);
console.log('segment tracks');

async function byRudder(key, options) {
  const client = new Rudder(key, { dataPlaneUrl: host, flushInterval: 0, retryCount: 0, logLevel: 'none',
    errorHandler: () => {}, ...options });
  client.flushed = true; // so that all are one batch
  client.track({ userId: 'unit 4', event: 'checkout', properties: { total: 1 } });
  client.track({ anonymousId: 'unit 5', event: 'checkout', properties: { total: 0.5 } });
  client.screen({ userId: 'unit 6', name: 'checkout' });
  let told;
  await client.flush((error) => { told = error; });
  await new Promise((next) => { setTimeout(next, 10); });
  return told;
}

assert.equal(await byRudder(writeKey), undefined); // compressed
assert.equal(await byRudder(writeKey, { gzip: false }), undefined); // and again: nothing counts twice
assert.equal((await byRudder('sotto_unknown')).response.status, 401);
console.log('rudder tracks');
