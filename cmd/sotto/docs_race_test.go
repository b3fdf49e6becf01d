//go:build race

package main

// Under the race detector simulations are ten times slower, and each is run without it as well.
const underRace = true
