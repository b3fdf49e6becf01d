package secagg_test

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/secagg"
)

// Twenty clients, of whom one vanishes before it sends its masked message. Noise shares, if any,
// are in the messages already.
func ExampleLocal() {
	id, err := secagg.NewID(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	session := secagg.Session{ID: id, Experiment: "headlines", Arm: 3, Batch: 7, Grid: 100,
		Length: 1, Enrolled: 20, NMin: 15, Noise: "none",
		Mode: secagg.Malicious, Gamma: 0.1, Delta: 0.1}
	messages := map[uint32][]uint64{}
	for i := range uint32(20) {
		messages[i] = []uint64{uint64(i)}
	}
	run := secagg.Local{Fault: func(f secagg.Frame) [][]byte {
		if f.Client == 9 && f.Kind == secagg.KindMasked {
			return nil
		}
		return [][]byte{f.Message}
	}}
	sum, survivors, err := run.Sum(context.Background(), session, messages)
	fmt.Println(sum, len(survivors), err)
	// Output: [181] 19 <nil>
}

// A thousand clients, a tenth of them corrupt, a tenth vanishing.
func ExampleChoose() {
	honest, _ := secagg.Choose(1000, 100, 0.1, secagg.SemiHonest, false)
	malicious, _ := secagg.Choose(1000, 100, 0.1, secagg.Malicious, false)
	fmt.Println(honest.K, honest.T)
	fmt.Println(malicious.K, malicious.T)
	// Output:
	// 46 26
	// 90 63
}
