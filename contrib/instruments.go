//go:build ignore

// Command instruments draws from mechanisms, some of which are broken, into files for other people's
// testers of privacy (instruments.py), and has ours look at the same samples. See docs/certificate.md.
//
//	go run contrib/instruments.go DIR
//
// Each mechanism claims ε = 1 for a sum that is 0 or 1, and writes DIR/NAME.0 and DIR/NAME.1: samples of
// as many doubles as it has numbers, little-endian.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/noise"
)

const (
	claim   = 1.0
	samples = 1_000_000 // of each sum
	gamma   = 1e-3      // that a sound one is refuted, of one instrument at one number of samples
)

// sizes are how many samples an instrument gets, of both sums together: a decade in two steps.
var sizes = []int{100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000}

// A mechanism adds noise to a sum.
type mechanism struct {
	name string
	draw func(sum float64) []float64
}

func one(name string, noise func() float64) mechanism {
	return mechanism{name, func(sum float64) []float64 { return []float64{sum + noise()} }}
}

func mechanisms(src *rand.Rand) []mechanism {
	laplace := func(scale float64) func() float64 { // exact, on the grid of people's rewards
		law, err := noise.NewDiscreteLaplace(uint64(scale*(1<<20)), 1)
		if err != nil {
			log.Fatal(err)
		}
		return func() float64 {
			x, err := law.Draw(src)
			if err != nil {
				log.Fatal(err)
			}
			return float64(x) / (1 << 20)
		}
	}
	whole := laplace(1)
	return []mechanism{
		one("sound", whole),
		one("half-noise", laplace(1./2)),
		one("wrong-sensitivity", laplace(2./3)),
		one("tenth-less-noise", laplace(0.9)),
		{"shared-noise", func(sum float64) []float64 { // two sums, of which the other is 0
			x := whole()
			return []float64{sum + x, x}
		}},
		one("noise-forgotten", func() float64 { // once in a hundred
			if src.IntN(100) == 0 {
				return 0
			}
			return whole()
		}),
		one("noise-cut", func() float64 { return min(max(whole(), -4), 4) }),
		one("floating-point", func() float64 { // the textbook's, which no instrument sees that looks at sizes alone
			x := math.Log(1 - src.Float64())
			if src.IntN(2) == 0 {
				x = -x
			}
			return x
		}),
	}
}

// attacks score a sample; the higher, the more it speaks for the sum 1.
var attacks = []struct {
	name  string
	score func(x []float64) float64
}{
	{"size", func(x []float64) float64 { return x[0] }},
	{"difference", func(x []float64) float64 { return x[0] - x[len(x)-1] }},
	{"bare", func(x []float64) float64 { // a sum without noise, or an end of it
		switch x[0] {
		case 1, 5, -3:
			return 1
		case 0, 4, -4:
			return -1
		}
		return 0
	}},
	{"bits", func(x []float64) float64 { // 1 + noise is a multiple of 2^-53 where noise alone need not be
		if whole := x[0] * (1 << 53); math.Abs(x[0]) < 1 && whole != math.Trunc(whole) {
			return -1
		}
		return 0
	}},
}

// ours is after how many samples Sotto's auditor refutes the claim, 0 if it does not, and by which attack.
func ours(coins *rand.Rand, all [2][][]float64) (int, string) {
	names := make([]string, len(attacks))
	for _, n := range sizes {
		scores, at := make([]audit.Scores, len(attacks)), [2]int{}
		for range n {
			b := coins.IntN(2)
			if at[b] == samples {
				continue // the other sum's are left
			}
			x := all[b][at[b]]
			at[b]++
			for i, a := range attacks {
				names[i] = a.name
				side := &scores[i].Out
				if b == 1 {
					side = &scores[i].In
				}
				*side = append(*side, a.score(x))
			}
		}
		found, best, err := audit.Judge(scores, names, gamma, 0, claim)
		if err != nil {
			log.Fatal(err)
		}
		if found.Refuted {
			return n, names[best]
		}
	}
	return 0, ""
}

func write(path string, all [][]float64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	for _, x := range all {
		if err := binary.Write(out, binary.LittleEndian, x); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: instruments DIR")
	}
	src := rand.New(rand.NewPCG(36, 7))
	for _, m := range mechanisms(src) {
		var all [2][][]float64
		for sum := range all {
			for range samples {
				all[sum] = append(all[sum], m.draw(float64(sum)))
			}
			if err := write(filepath.Join(os.Args[1], fmt.Sprintf("%s.%d", m.name, sum)), all[sum]); err != nil {
				log.Fatal(err)
			}
		}
		n, by := ours(src, all)
		fmt.Printf("%-18s sotto %8d %s\n", m.name, n, by)
	}
}
