// Decides by a plan with GrowthBook's client, and reports each exposure when it is made. In a page key is one of the
// scope browser, and unit the name that unitToken signs. On a server it is a key whose only scope is decide: send the
// result's hashValue as targetingKey, and that key as X-API-Key. The ranges of a feature give each arm exactly its
// propensity; earlier epochs stay in the rule, so a sticky bucket keeps its arm. Have the client ask again at least once
// in half a lease: init({ pollingInterval }), or WithPollDataSource of the SDK for Go.
const gb = new GrowthBook({ apiHost: 'https://bandits.example', clientKey: key, attributes: { id: unit },
  stickyBucketService: new LocalStorageStickyBucketService(),
  trackingCallback(experiment, { key: variation, stickyBucketUsed }) {
    if (stickyBucketUsed) return; // it was sent when it was made
    const cut = variation.lastIndexOf(':');
    const exposures = [{ experiment: experiment.key, targetingKey: unitToken, hash: 'growthbook',
      epoch: Number(variation.slice(cut + 1)), arm: variation.slice(0, cut) }];
    fetch(`https://bandits.example/v1/exposures?key=${key}`,
      { method: 'POST', keepalive: true, body: JSON.stringify({ exposures }) });
  } });
await gb.init();
gb.getFeatureValue('checkout', 'classic');
