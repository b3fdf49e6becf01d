package dap

// What two servers promise (docs/two-servers.md), and why. One reward of an honest client is exchanged for another; what
// somebody sees in the two worlds has about the same law, as the declared mechanism says of a release with one whole noise.
//
// Against the leader together with any clients, curious or malicious, if the helper is honest.
//
//   1. The helper's shares are sealed to a key that clients have from the declaration, and the seal is
//      secure against chosen ciphertexts: without the helper's key it may as well be of zeros. What the
//      leader can have the helper open is an honest report as it was made, under its own task, id and
//      ticket, or something that the leader or its clients made themselves.
//   2. The leader's share is the encoded reward and proof, less what a random seed expands to: uniform,
//      and independent of the reward.
//   3. The helper says of a report whether it passes. For an honest report that is decided by whether
//      the leader's half of the check is what it should be: what else enters is the proof's randomness,
//      uniform by the proof's zero knowledge, and not the reward. This is proved of one check of each
//      report, and there is one: its ticket is spent with it.
//   4. So of rewards there is one number left for each batch: the sum over the honest reports A that
//      pass, shifted by what the leader knows, with the noise Z, in the field. It is a function of Σ_A y
//      + Z: reducing and shifting are post-processing. A reward moves Σ_A y by 2²⁰ steps at most, which
//      is what Z is calibrated to.
//   5. The leader may choose A as it likes, one by one, from what it has seen; but it chooses without
//      the rewards in A, and a ticket that was in one A is in no other. So the price of all batches
//      together is that of the worst one, not the sum.
//   6. Questions that are repeated get the bytes that they got. Averaging over them averages one number.
//
// Against the helper together with any clients, curious or malicious, if the leader is honest.
//
//   1. Its shares expand from seeds that do not depend on the reward. The leader's halves of the checks
//      are what the proofs' verifiers are, less its own: zero, a uniform x and x² − x, whatever the
//      reward.
//   2. Of rewards it then sees releases, and decisions that follow from these. A release is a function
//      of Σ_A y + Z, Z being the leader's noise: the leader adds what the helper said, which may be
//      anything, and Z in the field, and only then looks at the number. (Were it to clip, or to refuse
//      what is out of range, before its noise is in it, a helper could move the sum of both to the edge,
//      and be told without noise on which side it is.) If the helper's share is not of the reports that
//      it said pass, a uniform element of a leader's share is left over, and the release is noise
//      altogether.
//   3. A slot is released once, and its reports are gone with the release.
//
// Against clients, if both servers are honest. A report that passes counts a number from 0 to `grid`. One that
// does not is refused by both alike, except with a probability below 2⁻⁵⁶ for each that is tried; the public
// default counts for it. Whoever has no token of a decision is not counted, and a decision counts once.
