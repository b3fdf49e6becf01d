// Package prio sums clients' integers between two servers, each of which learns the noisy sum and
// nothing else, and neither of which lets a lying client count for more than the range: Prio3 (RFC
// draft-irtf-cfrg-vdaf; Corrigan-Gibbs and Boneh, NSDI 2017), from github.com/cloudflare/circl.
//
// A client speaks once: she splits her integer from 0 to g into two shares, with a proof that
// it is in the range, and sends one to each server. The servers check the proof together, add
// up the shares of those that pass, and each adds a whole noise of its own to its share before
// they put them together.
//
// # What is promised
//
// Against one corrupt server together with any number of corrupt clients: it learns the sum over
// all accepted clients with the other server's noise in it, which reports were accepted, and who
// sent them. One whole noise is in what it sees, whatever it does: that is what a mechanism's price
// is to be computed for. The noise in the sum is that of two.
//
// Against corrupt clients alone: a report adds an integer from 0 to g, or is refused, with the
// soundness of Prio3 (the degree of the proof over the 2^64 − 2^32 + 1 elements of its field, for
// each report that is tried).
//
// # What is not
//
// A corrupt server can spoil the sum: nothing proves that it added what it says. Two corrupt
// servers see every reward. Who takes part, and when, is no secret. Noise cannot be the clients',
// as it is not bounded and would pass no proof of a range. Sums over slowly changing groups are
// kept apart by the noise only. A report is bound to its session (secagg.Session.Digest): a server
// cannot use it in another one; a nonce is taken once.
package prio
