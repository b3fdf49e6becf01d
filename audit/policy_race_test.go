//go:build race

package audit

// underRace says that the race detector slows every game tenfold.
const underRace = true
