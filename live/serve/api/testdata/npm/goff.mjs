// GO Feature Flag's provider for servers asks a running service: of it the address and the key have changed.
// TestGOFFServer starts that, with the experiment shop, and says where it is by the environment.
import assert from 'node:assert/strict';
import { ErrorCode, OpenFeature } from '@openfeature/server-sdk';
import { GoFeatureFlagProvider } from '@openfeature/go-feature-flag-provider';

const { SOTTO_SERVER: endpoint, SOTTO_KEY: apiKey } = process.env;
const errors = [];
const logger = { error: (...e) => errors.push(String(e)), warn() {}, info() {}, debug() {} };
const checks = (d) => {
  assert.ok(['#c00', '#00c'].includes(d.value), JSON.stringify(d));
  assert.ok(['red', 'blue'].includes(d.variant), JSON.stringify(d));
  assert.match(d.flagMetadata.decision, /^[-\w]{58}$/);
};

// Each evaluation is a request, and the reward is of the decision in its metadata
await OpenFeature.setProviderAndWait(new GoFeatureFlagProvider({ endpoint, apiKey }, logger));
const server = OpenFeature.getClient();
const who = { targetingKey: 'unit 1', plan: 'free', anonymous: false };
const d = await server.getStringDetails('shop', 'usual', who);
checks(d);
assert.equal(d.reason, 'SPLIT');
assert.deepEqual(await server.getStringDetails('shop', 'usual', who), d, 'asked again, it is another decision');
const none = await server.getStringDetails('none', 'usual', who);
assert.deepEqual([none.value, none.errorCode], ['usual', ErrorCode.FLAG_NOT_FOUND]);
const other = await server.getBooleanDetails('shop', true, { targetingKey: 'nobody' });
assert.deepEqual([other.value, other.errorCode], [true, ErrorCode.TYPE_MISMATCH]);
const out = await server.getStringDetails('shop', 'usual', { ...who, consent: false });
assert.deepEqual([out.value, out.reason, out.flagMetadata.decision], ['#c00', 'DEFAULT', undefined]);
const answer = await fetch(`${endpoint}/v1/experiments/shop/rewards`, { method: 'POST',
  headers: { 'X-API-Key': apiKey }, body: JSON.stringify({ decision: d.flagMetadata.decision, reward: 0.25 }) });
assert.deepEqual(await answer.json(), { status: 'accepted' });
await OpenFeature.close(); // which reports what was evaluated
assert.deepEqual(errors, []);
console.log('server evaluates');
process.exit(0);
