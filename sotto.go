// Package sotto is differentially private bandits for Go: simulate them exactly and fast, account
// for every release of a reward, and say what privacy costs.
//
// The principle is that a policy is post-processing. A curator sums the rewards of a slot and
// releases a noisy statistic, once; a policy sees released statistics alone, so that its privacy is
// that of the releases. A package of policies cannot import one that holds rewards, and the only
// value that a policy is given is one that the ledger has sealed.
//
// Where to begin:
//
//   - to simulate: package sim, whose example is a run in ten lines; lab/experiment, for files;
//     choose, to rank policies
//   - on real data: trial, trial/stopping, and release for a program of one's own
//   - with people who come one by one, and whose rewards come late: play; live/serve, for a service,
//     and client, to ask it
//   - a policy of one's own: policy, and cli, which has all commands with it
//   - the proofs: privacy for what is charged, release for what is assumed, noise for the samplers
//
// docs/design.md has every package with its place: each imports only what is below it.
package sotto
