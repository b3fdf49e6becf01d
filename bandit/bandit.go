// Package bandit holds reward laws, instances and the worlds they come from.
package bandit

import "github.com/sotto-dp/sotto/noise"

// A Law is the law of an arm's rewards.
type Law interface {
	Mean() float64
	// Support is the smallest interval that holds every reward; ±Inf if unbounded.
	Support() (lo, hi float64)
	// Draw is one reward.
	Draw(s *noise.Fast) float64
	// Sum is the sum of n independent rewards, exact in law; O(1) where the sum has a closed law.
	Sum(n int, s *noise.Fast) float64
	// String is the law as an experiment file writes it; equal strings are equal laws.
	String() string
}

// An Instance is the arms' laws.
type Instance struct {
	Arms []Law
}
