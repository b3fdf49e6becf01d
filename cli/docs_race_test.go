//go:build race

package cli

// Under the race detector simulations are ten times slower, and each is run without it as well.
const underRace = true
