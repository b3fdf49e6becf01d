//go:build race

package serve

// underRace says that the race detector slows everything tenfold.
const underRace = true
