//go:build race

package liveaudit

// underRace says that the race detector slows everything tenfold.
const underRace = true
