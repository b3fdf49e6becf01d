package design_test

import (
	"fmt"

	"github.com/sotto-dp/sotto/internal/design"
)

// Three actions in the plane. The middle one is short: it is not worth playing.
func Example() {
	actions := [][]float64{{1, 0}, {0.5, 0.5}, {0, 1}}
	d, err := design.Optimal(actions, design.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println("weights", d.Weights, "G", d.G)
	counts, err := d.Counts(25)
	if err != nil {
		panic(err)
	}
	norms, err := design.Norms(actions, counts)
	if err != nil {
		panic(err)
	}
	fmt.Println("counts", counts)
	fmt.Printf("squared norms %.4f\n", norms)
	// Output:
	// weights [0.5 0 0.5] G 2
	// counts [13 0 13]
	// squared norms [0.0769 0.0385 0.0769]
}
