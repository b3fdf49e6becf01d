// Package sotto is differentially private bandits for Go: simulate them exactly and fast, account
// for every release of a reward, and say what privacy costs.
//
// The module's packages, ground floor first (a package imports only floors below its own):
//
//   - noise: exact discrete samplers for real rewards, fast ones for simulation,
//     streams of randomness
//   - privacy: budgets, conversions, composition, and the ledger that every release passes
//   - logged: logged data, read by the names of its columns
//   - secagg: secure aggregation, a sum of clients' messages and nothing else
//   - secagg/transport: the same over TCP with TLS
//   - bandit: reward laws, instances, data sets as instances
//   - release: the curator, the only package that holds a reward, and the protocol that makes its
//     releases under other trust models
//   - secagg/prio: sums between two servers, with proofs of the range
//   - aggregate: ways to sum users' messages, by name
//   - policy: bandit policies as post-processing of releases, one file each
//   - policy/linear: linear and contextual bandits, the same way
//   - policy/identify: best-arm identification, rules that stop by themselves
//   - bound: lower and upper bounds on regret, characteristic times of identification
//   - catalog, sim: policies by name; one run, exactly
//   - stopping: stopping rules for a mean
//   - experiment: YAML in, tidy results out; shards, resume
//   - choose: which policy to use, by simulation at a stated error level
//   - trial: one trial for the best arm, on data or laws, and planned
//   - audit: attacks on mechanisms and policies, and lower bounds on ε
//   - cli: the commands; cmd/sotto: the program
//
// What only Sotto itself uses is in internal/base, which imports nothing above the policies
// (relative entropies, intervals, optimal designs, ranking data, files that are there whole), and
// in internal/front, which stands on top (pages and figures, training runs under audit, the
// sources' figures and claims).
//
// The example of package sim is a run in ten lines.
//
// The principle is that a policy is post-processing. A curator sums the rewards of a slot and
// releases a noisy statistic, once; a policy sees released statistics alone, so that its privacy is
// that of the releases. A package of policies cannot import one that holds rewards, and the only
// value that a policy is given is one that the ledger has sealed.
package sotto
