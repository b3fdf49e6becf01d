// Decides by a plan in Node, without a request for each unit: SOTTO_KEY=sotto_… node lease.mjs, beside a copy of the
// service's /sotto-lease.js. The key has the scope decide, and names units. The clock sends exposures each second, and
// again while the service is not available. decide throws when the plan has ended and no other could be fetched: show the
// usual arm then, and report nothing.
//
// store keeps arms of units that come back: an object with getItem and setItem, or GrowthBook's StickyBucketService; with
// that, call await lease.load({ unit }) before decide.
import { follow } from './sotto-lease.js';

const lease = await follow('checkout', { server: 'http://127.0.0.1:8080', key: process.env.SOTTO_KEY });
const { arm } = lease.decide({ unit: 'visitor 7' });
console.log(arm);
await lease.close(); // sends what is left
