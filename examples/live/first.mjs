// A decision and its reward, by OpenFeature's provider for servers: KEY=sotto_… node first.mjs
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';

const baseUrl = 'http://127.0.0.1:8080', key = process.env.KEY;
await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl, headers: [['X-API-Key', key]] }));
const d = await OpenFeature.getClient().getStringDetails('shop', '#c00', { targetingKey: 'visitor 7' });
const answer = await fetch(`${baseUrl}/v1/experiments/shop/rewards`, { method: 'POST',
  headers: { 'X-API-Key': key }, body: JSON.stringify({ decision: d.flagMetadata.decision, reward: 1 }) });
console.log(d.variant, d.value, await answer.text());
