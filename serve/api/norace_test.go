//go:build !race

package api

// underRace says that the race detector slows everything tenfold.
const underRace = false
