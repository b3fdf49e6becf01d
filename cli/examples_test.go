package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// The made-up data of docs/trial.md and docs/abtest.md are what this test writes with -update: the
// rates are exact, the order of an arm's rows is random, and arms take turns, as with equal shares.
func TestTutorialData(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2026))
	type arm struct {
		name      string
		successes int
	}
	log := func(rows int, arms ...arm) []byte {
		rewards := make([][]int, len(arms))
		for i, a := range arms {
			rewards[i] = make([]int, rows)
			for k := range a.successes {
				rewards[i][k] = 1
			}
			r.Shuffle(rows, func(k, l int) { rewards[i][k], rewards[i][l] = rewards[i][l], rewards[i][k] })
		}
		b := bytes.NewBufferString("arm,reward\n")
		for k := range rows {
			for i, a := range arms {
				fmt.Fprintf(b, "%s,%d\n", a.name, rewards[i][k])
			}
		}
		return b.Bytes()
	}
	reading := bytes.NewBufferString("share\n")
	for range 5000 {
		fmt.Fprintf(reading, "%.2f\n", 0.2+0.8*r.Float64())
	}
	for _, f := range []struct {
		name string
		data []byte
	}{
		{"doses.csv", log(1600, arm{"placebo", 560}, arm{"low", 720}, arm{"middle", 1120}, arm{"high", 800})},
		{"abtest.csv", log(2000, arm{"control", 240}, arm{"short", 300}, arm{"video", 260})},
		{"reading.csv", reading.Bytes()},
	} {
		path := "../examples/" + f.name
		if *update {
			if err := os.WriteFile(path, f.data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, f.data) {
			t.Errorf("examples/%s is not what this test writes (error %v): go test ./cli "+
				"-run TutorialData -update", f.name, err)
		}
	}
}
