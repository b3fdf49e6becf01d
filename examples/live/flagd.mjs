// Decides by a plan with flagd's in-process provider, which looks at the file that `sotto flagd flags.json` keeps, and
// reports each exposure when it is made. Use names in ASCII: an exposure of another name counts nowhere.
await OpenFeature.setProviderAndWait(
  new FlagdProvider({ resolverType: 'in-process', offlineFlagSourcePath: 'flags.json' }));
OpenFeature.addHooks({
  after({ context, flagKey }, { reason, variant, flagMetadata: { epoch } }) {
    if (reason !== 'TARGETING_MATCH' || !epoch) return;
    const exposures = [{ experiment: flagKey, targetingKey: context.targetingKey, epoch, arm: variant, hash: 'flagd' }];
    fetch('https://bandits.example/v1/exposures', { method: 'POST', headers: { 'X-API-Key': 'sotto_…' },
      body: JSON.stringify({ exposures }) });
  },
});
