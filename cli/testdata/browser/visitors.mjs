// The page of a shop, with OpenFeature's own SDK and provider: many visitors, one after the other in
// each of a few lanes, are given an arm and report a reward. All lanes are one browser, which has six connections
// to a host over HTTP/1.1, so that none follows changes for good.
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';
import { OpenFeature } from '@openfeature/web-sdk';

const lanes = [];

// open connects some lanes to a service, by a key that everybody can read.
globalThis.open_ = async (baseUrl, key, flag, first) => {
  for (let i = 0; i < first.length; i++) {
    const domain = `lane ${i}`;
    await OpenFeature.setContext(domain, { targetingKey: first[i] });
    await OpenFeature.setProviderAndWait(domain, new OFREPWebProvider({ baseUrl, cacheMode: 'disabled',
      pollInterval: 0, changeDetection: 'none', headers: [['X-API-Key', key]] }));
    lanes.push({ domain, client: OpenFeature.getClient(domain), report: `${baseUrl}/v1/experiments/${flag}/rewards?key=${key}` });
  }
};

// visit sends visitors, by the tokens that the shop's server signed for them; share of each arm's
// visitors who buy. It says how many were given each arm, and how many were answered nothing.
globalThis.visit = async (flag, tokens, share) => {
  const seen = { given: {}, bought: 0, lost: 0 };
  let next = 0;
  await Promise.all(lanes.map(async ({ domain, client, report }) => {
    while (next < tokens.length) {
      await OpenFeature.setContext(domain, { targetingKey: tokens[next++] });
      const d = client.getStringDetails(flag, 'none');
      const decision = d.flagMetadata?.decision;
      if (d.reason !== 'SPLIT' || !decision) {
        seen.lost++;
        continue;
      }
      seen.given[d.variant] = (seen.given[d.variant] ?? 0) + 1;
      const reward = Math.random() < share[d.variant] ? 1 : 0;
      seen.bought += reward;
      const r = await fetch(report, { method: 'POST', body: JSON.stringify({ decision, reward }) });
      if (!r.ok) seen.lost++;
    }
  }));
  return seen;
};
globalThis.ready = true;
