// A page that shows an arm by OpenFeature's provider for pages, and reports the click. Bundle it, and write the visitor's
// signed name into the page: <html data-unit="…">.
import { OpenFeature } from '@openfeature/web-sdk';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';

const service = 'https://bandits.example', key = 'sotto_…';
await OpenFeature.setContext({ targetingKey: document.documentElement.dataset.unit });
await OpenFeature.setProviderAndWait(new OFREPWebProvider({ baseUrl: service,
  headers: [['X-API-Key', key]], cacheMode: 'disabled' }))
  .catch(() => {}); // the service is not there: every flag has its default
const d = OpenFeature.getClient().getStringDetails('shop', '#c00');
const button = document.querySelector('#buy');
button.style.background = d.value;
const decision = d.errorCode ? undefined : d.flagMetadata.decision;
button.addEventListener('click', () => decision && navigator.sendBeacon(
  `${service}/v1/experiments/shop/rewards?key=${key}`, JSON.stringify({ decision, reward: 1 })));
