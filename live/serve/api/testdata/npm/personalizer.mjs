// The client of Azure AI Personalizer asks a running service, unchanged: its endpoint and its key are
// those of sotto serve. TestPersonalizerClient starts that, and says where it is by the environment.
import assert from 'node:assert/strict';
import personalizer from '@azure/cognitiveservices-personalizer';
import azure from '@azure/ms-rest-azure-js';

const { SOTTO_SERVER: endpoint, SOTTO_KEY: key, SOTTO_DEFERS: defers, SOTTO_CONTEXTS: contexts } = process.env;
const clientOf = (k) => new personalizer.PersonalizerClient(
  new azure.CognitiveServicesCredentials(k), endpoint);
const client = clientOf(key);

// As the client's README has it, with the experiment's arms.
const request = (more) => ({
  contextFeatures: [{ timeOfDay: 'Morning' }],
  actions: [
    { id: 'NewsArticle', features: [{ type: 'News' }] },
    { id: 'SportsArticle', features: [{ type: 'Sports' }] },
    { id: 'EntertainmentArticle', features: [{ type: 'Entertainment' }] },
  ],
  ...more,
});
const ids = request().actions.map((a) => a.id).sort();

async function refused(call, status, code, inner, target) {
  await assert.rejects(call, (e) => {
    assert.equal(e.statusCode, status, e.message);
    assert.deepEqual([e.body.error.code, e.body.error.innerError.code, e.body.error.target],
      [code, inner, target], e.message);
    assert.equal(e.code, code);
    assert.ok(!JSON.stringify([e.message, e.body]).includes('731'), 'a reward is in an error');
    return true;
  });
}

for (const eventId of ['75269AD0-BFEE-4598-8196-C57383D38E10', 'a b/c?d', undefined]) {
  const out = await client.rank(request({ eventId, deferActivation: false }));
  assert.equal(out._response.status, 201);
  assert.deepEqual(out.ranking.map((a) => a.id).sort(), ids);
  assert.equal(out.ranking[0].id, out.rewardActionId);
  const sum = out.ranking.reduce((s, a) => s + a.probability, 0);
  assert.ok(Math.abs(sum - 1) < 1e-9 && out.ranking[0].probability > 0, JSON.stringify(out.ranking));
  if (eventId) assert.equal(out.eventId, eventId);
  else assert.ok(out.eventId.length >= 16);
  const again = await client.rank(request({ eventId: out.eventId }));
  assert.deepEqual([again.rewardActionId, again.eventId], [out.rewardActionId, out.eventId]);
  for (const value of [1, 0, -1, 731]) {
    const rewarded = await client.events.reward(out.eventId, { value });
    assert.equal(rewarded._response.status, 204);
    assert.equal(rewarded._response.headers.get('sotto-status'), 'accepted');
  }
  assert.equal((await client.events.activate(out.eventId))._response.status, 204);
}
console.log('ranks, rewards, activates');

if (contexts) {
  const out = await client.rank(request({ excludedActions: ['NewsArticle'] }));
  assert.deepEqual([out.ranking[0].id, out.ranking[0].probability], ['NewsArticle', 0]);
  assert.equal(out.rewardActionId, out.ranking[1].id);
} else {
  await refused(client.rank(request({ excludedActions: ['NewsArticle'] })), 400, 'BadRequest',
    'InvalidRankRequest', 'excludedActions');
}
console.log('excludes');

if (defers) {
  const out = await client.rank(request({ deferActivation: true }));
  const activated = await client.events.activate(out.eventId);
  assert.equal(activated._response.headers.get('sotto-status'), 'accepted');
  assert.equal((await client.events.reward(out.eventId, { value: 1 }))._response.status, 204);
} else {
  await refused(client.rank(request({ deferActivation: true })), 400, 'BadRequest',
    'InvalidRankRequest', 'deferActivation');
}
console.log('defers');

// What it has no method for it asks with its own pipeline and key.
const url = `${endpoint}/personalizer/v1.0/configurations/service`;
const got = await client.sendRequest({ url, method: 'GET' });
assert.equal(got.status, 200);
const { rewardWaitTime, defaultReward, rewardAggregation, explorationPercentage } = got.parsedBody;
assert.deepEqual([rewardWaitTime, defaultReward, rewardAggregation, explorationPercentage],
  ['00:10:00', 0, 'earliest', 0.2]);
const put = await client.sendRequest({ url, method: 'PUT', body: got.parsedBody });
assert.deepEqual([put.status, put.parsedBody.error.innerError.code], [403, 'InvalidApiAccess']);
console.log('reads the configuration');

await refused(client.rank({ actions: [] }), 400, 'BadRequest', 'InvalidRankRequest', 'actions');
await refused(client.rank(request({ eventId: '' })), 400, 'BadRequest', 'InvalidRankRequest', 'eventId');
await refused(client.rank({ actions: [...request().actions, ...request().actions] }), 400, 'BadRequest',
  'InvalidRankRequest', 'actions[3].id');
await refused(client.events.reward('never ranked', { value: 731 }), 404, 'ResourceNotFound',
  'ResourceNotFound', 'eventId');
await refused(client.events.activate('never ranked'), 404, 'ResourceNotFound', 'ResourceNotFound',
  'eventId');
await refused(clientOf('sotto_wrong').rank(request()), 401, '401', 'Unauthorized', undefined);
console.log('is told errors');
