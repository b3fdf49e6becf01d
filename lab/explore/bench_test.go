package explore_test

import (
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/lab/explore"
	"github.com/sotto-dp/sotto/sim"
)

// BenchmarkRun is a run of T = 10⁷ on five arms, of each cell of three policies.
func BenchmarkRun(b *testing.B) {
	r, err := explore.Parse("policies=adap-klucb,dp-se,dp-imed&horizon=1e7&epsilon=0.5")
	if err != nil {
		b.Fatal(err)
	}
	e, err := explore.New(catalog.Catalog{}, r, nil)
	if err != nil {
		b.Fatal(err)
	}
	room, to := &sim.Result{}, make([]float64, e.Points())
	for i, name := range []string{"adap-klucb", "its-twin", "dp-se", "its-twin", "dp-imed", "its-twin"} {
		b.Run(name, func(b *testing.B) {
			run := 0
			for b.Loop() {
				if err := e.Play(b.Context(), i, run%200, room, to); err != nil {
					b.Fatal(err)
				}
				run++
			}
		})
	}
}
