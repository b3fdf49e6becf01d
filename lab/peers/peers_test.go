package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
)

// The test's own program is a Vowpal Wabbit where this names a file, which it writes down all examples to.
// It prefers the last action, and says so in no order.
const heard = "SOTTO_TEST_VW"

func TestMain(m *testing.M) {
	if path := os.Getenv(heard); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(f, strings.Join(os.Args[1:], " "))
		actions := 0
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Fprintln(f, in.Text())
			switch line := in.Text(); {
			case line == "":
				fmt.Printf("%d:0.75,", actions-1)
				for i := range actions - 1 {
					fmt.Printf("%d:%.6g%s", i, 0.25/float64(actions-1), strings.Repeat(",", min(1, actions-2-i)))
				}
				fmt.Print("\n\n")
				actions = 0
			case !strings.HasPrefix(line, "shared "):
				actions++
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const smallWorlds = `name: small
kind: contextual
horizon: 40
runs: 1
delay: 7
instances:
  - {name: words, topics: 3, devices: 2}
policies: [{policy: adac-oful, greed: 1}]
budgets: [{rho: 1}]
checkpoints: 5
`

// A peer is asked for each decision, and told of each reward when its window has passed, with the probability
// that it gave the action: by what a program in Vowpal Wabbit's place has heard.
func TestVowpal(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "small.yaml")
	if err := os.WriteFile(file, []byte(smallWorlds), 0o600); err != nil {
		t.Fatal(err)
	}
	said := filepath.Join(dir, "heard")
	t.Setenv(heard, said)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = run(t.Context(), []string{"-vw", program, "-workers", "1", "-out", filepath.Join(dir, "out"), file}, &out,
		io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1+12 ||
		!strings.Contains(out.String(), "words,vw --bag 5,none,1,40,") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	processes := strings.Split(string(text), "--cb_explore_adf -q sa --quiet -p /dev/stdout ")[1:]
	if len(processes) != 6 {
		t.Fatalf("%d processes", len(processes))
	}
	for _, p := range processes {
		how, rest, _ := strings.Cut(p, "\n")
		examples := strings.Split(strings.TrimSuffix(rest, "\n\n"), "\n\n")
		// Decision t, from 1, comes after the rewards of those up to t − 7.
		if len(examples) != 40+33 {
			t.Fatalf("%s: %d examples", how, len(examples))
		}
		var asked []string
		learnt, preferred := 0, 0
		for _, e := range examples {
			lines := strings.Split(e, "\n")
			if len(lines) != 4 || !strings.HasPrefix(lines[0], "shared |s ") {
				t.Fatalf("%s: %q", how, e)
			}
			at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "0:") })
			if at < 0 {
				if lines[0] != "shared |s s0:1" && lines[0] != "shared |s s1:1" ||
					!slices.Equal(slices.Sorted(slices.Values(lines[1:])), []string{"|a a0:1", "|a a1:1", "|a a2:1"}) {
					t.Fatalf("%s: features %q", how, e)
				}
				asked = append(asked, e)
				continue
			}
			label, features, _ := strings.Cut(lines[at], " ")
			lines[at] = features
			if strings.Join(lines, "\n") != asked[learnt] ||
				len(asked)-learnt != 7 && len(asked) < 40 {
				t.Fatalf("%s: reward %d, after %d decisions, is of\n%s", how, learnt+1, len(asked), e)
			}
			want := "0.125"
			if at == 3 {
				want = "0.75"
				preferred++
			}
			if label != "0:0:"+want && label != "0:-1:"+want {
				t.Errorf("%s: label %s", how, label)
			}
			learnt++
		}
		if preferred < 9 { // of 33, each with probability 3/4: below 9 with probability 2e-9, from a fixed seed
			t.Errorf("%s: its preferred action is played %d times", how, preferred)
		}
	}
}

func TestProbabilities(t *testing.T) {
	if p, err := probabilities("1:0.8,0:0.2", 2); err != nil || p[0] != 0.2 || p[1] != 0.8 {
		t.Errorf("%v, %v", p, err)
	}
	for _, line := range []string{"", "0:0.8,2:0.2", "0:0.8", "0:0.8,1:-0.2", "0:x,1:1", "0:NaN,1:1", "0:0.5,1:0.6"} {
		if p, err := probabilities(line, 2); err == nil {
			t.Errorf("%q: %v", line, p)
		}
	}
}

// Rules by hand, after some rewards, beside a regression that is solved from all of them.
func TestRules(t *testing.T) {
	const d, lambda = 3, 2.0
	coins := &noise.Key{Seed: 5, Role: noise.RolePolicy}.Fast(1)[0]
	r := newRidge(catalog.ContextualSetting{Dim: d, Coins: coins}, lambda, 1)
	v, b := mat.NewDense(d, d, []float64{lambda, 0, 0, 0, lambda, 0, 0, 0, lambda}), mat.NewVecDense(d, nil)
	for i := range 3 * refitEvery {
		x := []float64{0.5, 0, 0.5}
		if i%3 == 0 {
			x = []float64{0.5, 0.7, 0}
		}
		click := i%4 == 0
		r.learn(components(x), click)
		y := mat.NewVecDense(d, x)
		var square mat.Dense
		square.Outer(1, y, y)
		v.Add(v, &square)
		if click {
			b.AddVec(b, y)
		}
	}
	var mean mat.VecDense
	if err := mean.SolveVec(v, b); err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, must be %v", what, got, want)
		}
	}
	for j := range d {
		near("mean", r.models[0].mean.AtVec(j), mean.AtVec(j))
	}
	actions := []float64{0.5, 0.7, 0, 0.5, 0, 0.5, 0.5, 0, 0}
	score := func(a int) float64 { return mat.Dot(&mean, mat.NewVecDense(d, actions[a*d:][:d])) }
	width := func(a int) float64 {
		x := mat.NewVecDense(d, actions[a*d:][:d])
		var y mat.VecDense
		if err := y.SolveVec(v, x); err != nil {
			t.Fatal(err)
		}
		return math.Sqrt(mat.Dot(x, &y))
	}
	for _, alpha := range []float64{0, 0.5, 50} {
		near("the optimist's action", float64(r.optimist(actions, alpha)),
			float64(most(3, func(a int) float64 { return score(a) + alpha*width(a) })))
	}
	if r.optimist(actions, 0) == r.optimist(actions, 50) {
		t.Error("width makes no difference")
	}
	p, best := r.gapWeights(actions, 40), most(3, score)
	sum := 0.0
	for a := range p {
		if sum += p[a]; a != best {
			near("a weight", p[a], 1/(3+40*(score(best)-score(a))))
		}
	}
	near("the sum of weights", sum, 1)
	// α⁻¹(θ̃ − mean) = U⁻¹z, so U of it is z, and V = UᵀU
	again := *coins
	theta := r.draw(0.5)
	theta.AddScaledVec(theta, -1, r.models[0].mean)
	var z, square mat.VecDense
	z.MulVec(r.models[0].chol.RawU(), theta)
	for j := range d {
		near("a normal", z.AtVec(j)/0.5, again.Normal())
	}
	square.MulVec(v, theta)
	near("a draw's length", mat.Dot(theta, &square), mat.Dot(&z, &z))
}

// The table of docs/contextual.md is what is stored, which the command above it has written.
func TestTable(t *testing.T) {
	f, err := os.Open("won.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/contextual.md")
	if err != nil {
		t.Fatal(err)
	}
	want := table(rows[1:])
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/contextual.md must have the table of lab/peers/won.csv:\n%s", want)
	}
}

// table is a line for each policy and budget, with what it won in each world until 2k, 5k, 10k and 100k.
func table(rows [][]string) string {
	var players, worlds []string
	cells, at := map[string]string{}, []string{"1995", "5012", "10000", "100000"}
	for _, r := range rows {
		world := r[0]
		if !slices.Contains(at, r[4]) {
			continue
		}
		player := fmt.Sprintf("`%s`", r[1])
		if r[2] != "none" {
			player += ", " + strings.Replace(r[2], "rho=", "ρ = ", 1)
		}
		if !slices.Contains(players, player) {
			players = append(players, player)
		}
		if !slices.Contains(worlds, world) {
			worlds = append(worlds, world)
		}
		cells[player+world+r[4]] = fmt.Sprintf("%s ± %s", round(r[5]), round(r[6]))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| until 2k · 5k · 10k · 100k | %s |\n|---|%s\n", strings.Join(worlds, " | "),
		strings.Repeat("---|", len(worlds)))
	for _, p := range players {
		line := []string{p}
		for _, w := range worlds {
			var won []string
			for _, t := range at {
				won = append(won, cmp.Or(cells[p+w+t], "–"))
			}
			line = append(line, strings.Join(won, " · "))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
	}
	return b.String()
}

func round(number string) string {
	var x float64
	if _, err := fmt.Sscan(number, &x); err != nil {
		return number
	}
	return strings.Replace(fmt.Sprintf("%.0f", math.Round(x)+0), "-", "−", 1)
}
