// Package identify holds policies that look for the best arm and stop by themselves:
// fixed-confidence best-arm identification ([Azize 2024, §2.2.8, §5.4]; [Azize et al. 2023]). Begin
// with NewDPTT.
//
// What is private is the whole transcript: who got which arm, when the trial stopped, and the
// answer. All of it is post-processing of releases, so it costs what they cost.
package identify

import "github.com/sotto-dp/sotto/policy"

// Output is what a rule makes of its releases and publishes: what its privacy covers, and what its
// ledger says that it covers.
const Output = "the whole transcript: plays, stopping time and answer"

// An Identifier is a policy that stops: Next then returns nil, and there is an answer. A rule
// that claims to be δ-correct gives a wrong one with probability at most its risk δ, if one
// arm alone is best.
type Identifier interface {
	policy.Policy
	// Answer is the arm that is said to be the best, −1 as long as Next has not returned nil.
	Answer() int
}

// A Reporter is an Identifier that has stopped and reports another stopping time than its
// plays: a broken twin.
type Reporter interface{ Reported() int }
