package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
)

// explorations are Vowpal Wabbit's ways to explore, each with its scale.
var explorations = []string{"squarecb", "epsilon", "regcb", "bag"}

// vowpal is Vowpal Wabbit as a policy: a process for each run, asked for each decision and told of each
// reward when it has come, with the probability that it gave the action.
func vowpal(program string) catalog.Entry {
	return entry("vw", "Vowpal Wabbit: Bietti, Agarwal and Langford 2021", []catalog.Param{
		{Name: "explore", Choices: explorations, Doc: "--squarecb, --epsilon, --regcb, --bag"},
		number("scale", "--gamma_scale, --epsilon's, --mellowness or how many bags", 10),
	}, func(s catalog.ContextualSetting, p catalog.Params) chooser {
		return &wabbit{program: program, args: flags(explorations[int(p["explore"])], p["scale"]), setting: s}
	})
}

// flags are the program's: a click costs −1, and what is none 0.
func flags(explore string, scale float64) []string {
	x := strconv.FormatFloat(scale, 'g', -1, 64)
	return append([]string{"--cb_explore_adf", "-q", "sa", "--quiet", "-p", "/dev/stdout"}, map[string][]string{
		"squarecb": {"--squarecb", "--gamma_scale", x}, "epsilon": {"--epsilon", x},
		"regcb": {"--regcb", "--mellowness", x, "--cb_min_cost", "-1", "--cb_max_cost", "0"}, "bag": {"--bag", x}}[explore]...)
}

// A wabbit is one process. It starts with the first decision and ends with the last.
type wabbit struct {
	program string
	args    []string
	setting catalog.ContextualSetting
	made    int // decisions

	cmd     *exec.Cmd
	to      io.WriteCloser
	answers *bufio.Reader
}

func (w *wabbit) start() (err error) {
	w.cmd = exec.Command(w.program, w.args...)
	w.cmd.Stderr = os.Stderr
	if w.to, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	w.answers = bufio.NewReader(out)
	return w.cmd.Start()
}

// pick asks for the probabilities of all actions and draws one. A process that fails plays no action,
// which ends the run with an error.
func (w *wabbit) pick(actions []float64) (int, func(bool)) {
	n := len(actions) / w.setting.Dim
	shared, each := w.lines(actions)
	p, err := w.ask(shared, each)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers: vw:", err)
		return n, nil
	}
	a := drawn(p, w.setting.Coins)
	if w.made++; w.made == w.setting.Horizon {
		err = w.end()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers: vw:", err)
		return n, nil
	}
	return a, func(click bool) {
		cost := 0
		if click {
			cost = -1
		}
		labelled := make([]string, n)
		copy(labelled, each)
		labelled[a] = fmt.Sprintf("0:%d:%.6g %s", cost, p[a], each[a])
		if _, err := w.ask(shared, labelled); err != nil {
			fmt.Fprintln(os.Stderr, "peers: vw:", err)
		}
	}
}

// ask sends an example, and reads the probabilities that it has at that time.
func (w *wabbit) ask(shared string, each []string) ([]float64, error) {
	if w.cmd == nil {
		if err := w.start(); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(w.to, shared+"\n"+strings.Join(each, "\n")+"\n\n"); err != nil {
		return nil, err
	}
	line, err := w.answers.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if _, err := w.answers.ReadString('\n'); err != nil { // the empty line that ends an answer
		return nil, err
	}
	return probabilities(strings.TrimSpace(line), len(each))
}

// probabilities reads an answer, such as 1:0.8,0:0.2.
func probabilities(line string, n int) ([]float64, error) {
	p, sum := make([]float64, n), 0.0
	for pair := range strings.SplitSeq(line, ",") {
		name, text, _ := strings.Cut(pair, ":")
		a, err := strconv.Atoi(name)
		q, bad := strconv.ParseFloat(text, 64)
		if err != nil || bad != nil || a < 0 || a >= n || !(q >= 0) {
			return nil, wrong("vw answers %q, must be probabilities of %d actions", line, n)
		}
		p[a] = q
		sum += q
	}
	if math.Abs(sum-1) > 1e-3 {
		return nil, wrong("vw answers %q, must be probabilities of %d actions", line, n)
	}
	return p, nil
}

func (w *wabbit) end() error {
	if err := w.to.Close(); err != nil {
		return err
	}
	return w.cmd.Wait()
}

// lines are a decision in Vowpal Wabbit's format: the context's features in the namespace s, an action's
// in a. It makes their products itself (-q sa). The map has an intercept, n components of the context, K
// words of the action and n·K products, all divided by the same norm.
func (w *wabbit) lines(actions []float64) (shared string, each []string) {
	d := w.setting.Dim
	k := len(actions) / d
	n := (d - 1 - k) / (k + 1)
	text := func(namespace string, x []float64) string {
		var b strings.Builder
		b.WriteString("|" + namespace)
		for j, v := range x {
			if v != 0 {
				fmt.Fprintf(&b, " %s%d:%.6g", namespace, j, v/actions[0])
			}
		}
		return b.String()
	}
	for i := range k {
		each = append(each, text("a", actions[i*d+1+n:][:k]))
	}
	return "shared " + text("s", actions[1:1+n]), each
}
