package liveaudit

import (
	"testing"

	"github.com/sotto-dp/sotto/noise"
)

// One life of a service.
func BenchmarkLive(b *testing.B) {
	src := noise.NewFast(3, 4)
	for b.Loop() {
		if _, _, err := arms.live(sound, 0, true, &src); err != nil {
			b.Fatal(err)
		}
	}
}
