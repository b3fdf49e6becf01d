// Package privacy says what noise costs, and holds the ledger that every release must pass. Begin
// with a Budget, such as Pure, and with NewLedger.
//
// # What is protected
//
// A record is one reward. Two data sets are neighbours if one reward was replaced by another
// (replace-one, never add or remove): [Azize 2024, Definition 2.2]. Rewards are in [0,1], clipped
// by the curator on entry, so a sum of rewards has sensitivity 1. What is protected is everything
// that follows from the releases: the arms that were played, the answer, the table of results.
//
// Rewards of vectors are in [−1,1], as the sources have it for linear bandits: a reward that is
// replaced moves Σ a·r by 2‖a‖ at most, in whatever norm the mechanism's noise is round in. The
// vectors are public unless a mechanism says otherwise (Entry.Protects).
//
// # What the ledger proves
//
// Every release reads one slot: rewards that belong together and to no other slot. A record is in
// one slot, so it is read by the releases of that slot and by no others. Releases of one slot add
// up (sequential composition, [Azize 2024, Proposition 2.9]); of several slots the worst counts (parallel
// composition, [Azize 2024, Lemma 2.10]). Ledger.Total is that maximum of sums, in every currency
// at once. It rests on four things that the curator must keep:
//
//   - which slot a reward falls into is settled before the reward is read;
//   - when a slot closes depends on counts and on earlier releases, never on the slot's own
//     unreleased rewards;
//   - sensitivity holds for what was really played: rewards are clipped, and each
//     enters its sum once;
//   - noise is drawn once for each release and kept, also after a restart.
//
// Earlier releases may decide which slots are opened: given these, both data sets agree on every
// slot except the one that holds the differing reward ([Azize 2024, Appendix C.1.2]; Lemma 2.10 itself
// is for a partition fixed in advance; Coq checks it for ε and slots that are chosen as one goes,
// proofs/Composition.v#parallel_composition). The mechanisms must be fixed in advance, or be capped in
// advance in one currency: ε, ρ, a Rényi divergence, μ of Gaussian DP, or ε and δ added up
// (WithCap; filter.go has the theorem). If what a slot goes through is itself chosen from its
// releases, the (ε,δ) that Total converts to is not proved: the best conversion may then depend on
// what was released. What a cap guarantees, converted once, is Ledger.Guarantee.
//
// Costs follow from the noise itself: a Mechanism is data about noise, no promise about privacy,
// and what the ledger does not know costs ∞.
//
// # Noise without a trusted server
//
// Some mechanisms say who adds the noise, and keep a reward from the server too. Aggregated is one
// release of [Chowdhury and Zhou 2023, Algorithm 1]: rewards as integers, noise by the server
// (central), by each user alone (local) or in shares (secagg), the sum modulo m. Behind a
// shuffler there are three, which differ in what they guarantee: ShuffledCount is ε-DP, a count of
// bits; SplitMix is (ε,δ)-DP, with δ for the shares; Clones is (ε,δ)-DP, local noise amplified.
// Shares of noise are calibrated to Users, the smallest promised number of honest users that
// answer: with fewer there must be no release. A policy sees none of this: it gets sums, and
// the tail of the noise in them.
//
// # Budgets, losses and conversions
//
// A Budget is a guarantee in one currency: Pure, ZCDP, Approx, Renyi, GDP, or None. A Loss is an
// upper bound on what a record loses in all currencies; it adds up without converting, and is
// converted once, at the end. Logarithms are natural.
package privacy
