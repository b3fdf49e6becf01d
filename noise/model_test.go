package noise

import (
	"bytes"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

var modelStrings = flag.Int("model.strings", 10_000, "strings of words on which the samplers are held against their model")

// A tape has so many words; a sampler that wants more ends with errTapeEnds.
type tape struct {
	words []uint64
	used  int
}

type errTapeEnds struct{}

func (t *tape) Uint64() uint64 {
	if t.used == len(t.words) {
		panic(errTapeEnds{})
	}
	w := t.words[t.used]
	t.used++
	return w
}

// on is what a sampler returns on these words, and how many it has used, as the model writes it.
func on(words []uint64, draw func(rand.Source) (string, error)) (answer string) {
	defer func() {
		if r := recover(); r != nil {
			if _, ends := r.(errTapeEnds); !ends {
				panic(r)
			}
			answer = "none"
		}
	}()
	src := &tape{words: words}
	value, err := draw(src)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %d", value, src.used)
}

// wordsNear are words of which many are where a sampler decides: at a prefix of e^{-k}, beside one, at
// its further digits, or at an end.
func wordsNear(src *rand.Rand, n int) []uint64 {
	words := make([]uint64, n)
	for i := range words {
		words[i] = src.Uint64()
		switch src.IntN(16) {
		case 0:
			words[i] = []uint64{0, 1, allOnes, allOnes - 1, 1 << 63}[src.IntN(5)]
		case 1, 2:
			k := src.IntN(len(expPrefixes))
			words[i] = expPrefixes[k]<<1 | src.Uint64()&1
			if i > 0 && src.IntN(2) == 0 { // the word before is the prefix, this one its next digits
				words[i-1] = words[i]
				e := expDigits(uint(k+1), 63+64)
				words[i] = e.And(e, new(big.Int).SetUint64(allOnes)).Uint64() + uint64(src.IntN(3)) - 1
			}
		case 3:
			words[i] = (expPrefixes[src.IntN(len(expPrefixes))]+uint64(src.IntN(3))-1)<<1 | src.Uint64()&1
		}
	}
	return words
}

// modelAnswers are those of the model of proofs/Extract.v, which a program of OCaml is made of.
func modelAnswers(t *testing.T, program string, lines []string) []string {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.Bytes())
	}
	answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(answers) != len(lines) {
		t.Fatalf("the model has %d answers to %d lines", len(answers), len(lines))
	}
	return answers
}

// The samplers return what their model returns, whose law Coq proves, and use as many words: on words
// drawn at random, and on words where they decide. A sampler that never draws 0 again is caught.
func TestModel(t *testing.T) {
	testkit.OneGoroutine(t)
	program := os.Getenv("SOTTO_MODEL")
	if program == "" {
		testkit.Missing(t, "SOTTO_MODEL does not name the program that proofs/check.sh DIRECTORY makes")
	}

	var lines, want []string
	for k := range uint(len(expPrefixes)) {
		for more := range uint(3) {
			lines = append(lines, fmt.Sprintf("digits %x %x", k+1, more))
			want = append(want, fmt.Sprintf("%x 0", expDigits(k+1, 63+64*more)))
		}
	}
	for i, got := range modelAnswers(t, program, lines) {
		if got != want[i] {
			t.Errorf("%s: the model has %s, expDigits %s", lines[i], got, want[i])
		}
	}

	src := rand.New(Key{Experiment: "model"}.ChaCha8())
	caught, ended := 0, 0
	const batch = 10_000
	for first := 0; first < *modelStrings; first += batch {
		lines, want = lines[:0], want[:0]
		var twins []string
		for i := first; i < min(first+batch, *modelStrings); i++ {
			scale := scales[src.IntN(len(scales))]
			law, err := NewDiscreteLaplace(scale.num, scale.den)
			if err != nil {
				t.Fatal(err)
			}
			name, num, den, words := "laplace", law.half.num, law.half.den, wordsNear(src, 48)
			twin := ""
			switch i % 3 {
			case 0:
				want = append(want, on(words, func(src rand.Source) (string, error) {
					x, err := law.Draw(src)
					return hexOf(x), err
				}))
				twin = on(words, func(src rand.Source) (string, error) {
					x, err := symmetricTwin(law).Draw(src)
					return hexOf(x), err
				})
			case 1:
				name = "geometric"
				want = append(want, on(words, func(src rand.Source) (string, error) {
					x, err := law.half.Draw(src)
					return hexOf(x), err
				}))
			case 2:
				name = "bernoulli_exp"
				den = max(src.Uint64()>>src.IntN(64), 1)
				num = src.Uint64() >> src.IntN(64)
				if num/den > 40 {
					num %= den
				}
				want = append(want, on(words, func(src rand.Source) (string, error) {
					yes, err := BernoulliExp(src, num, den)
					return fmt.Sprint(yes), err
				}))
			}
			twins = append(twins, twin)
			line := fmt.Sprintf("%s %x %x", name, num, den)
			for _, w := range words {
				line += fmt.Sprintf(" %016x", w)
			}
			lines = append(lines, line)
		}
		for i, got := range modelAnswers(t, program, lines) {
			if got != want[i] {
				t.Fatalf("the model has %q, the sampler %q: %s", got, want[i], lines[i])
			}
			if got == "none" {
				ended++
			}
			if twins[i] != "" && twins[i] != got {
				caught++
			}
		}
	}
	if caught == 0 {
		t.Errorf("a sampler that never draws 0 again is not caught in %d strings", *modelStrings)
	}
	if ended*10 > *modelStrings {
		t.Errorf("%d of %d strings end before the draw does: they are to be longer", ended, *modelStrings)
	}
	t.Logf("%d strings, %d of them too short for a draw; the broken sampler differs in %d", *modelStrings, ended, caught)
}

// hexOf is a number in hexadecimal, as the model writes it.
func hexOf(x int64) string { return new(big.Int).SetInt64(x).Text(16) }
