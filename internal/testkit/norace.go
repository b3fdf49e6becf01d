//go:build !race

package testkit

// Race says that the race detector is on, under which simulations take ten times as long.
const Race = false
