package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/privacy"
)

// transcribed is the transcript of a trial on data.
func transcribed(t testing.TB, r Rule, log logged.Log) string {
	t.Helper()
	var transcript bytes.Buffer
	if _, err := Run(context.Background(), Config{Rule: r, Log: log,
		Transcript: &transcript}); err != nil && !errors.Is(err, ErrUnfinished) {
		t.Fatal(err)
	}
	return transcript.String()
}

// A release that says another mechanism, slot, tail or count than the rule's is refused by its
// line, also where the plays and the answer stay what they were, where the ledger has nothing
// against it, and where whoever forged it has chained the lines anew.
func TestReplayRefusesForgedReleases(t *testing.T) {
	log := doses(100_000, 0.1, 0.95, 0.2)
	in, err := bandit.BernoulliInstance(0.1, 0.95, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range everyRule(t, 3) {
		var simulated bytes.Buffer
		if _, err := (Simulation{Rule: r, Source: bandit.Fixed(in), Runs: 1,
			Seed: 3}).Play(context.Background(), 0, &simulated); err != nil {
			t.Fatal(err)
		}
		for source, all := range map[string]string{"real": transcribed(t, r, log),
			"simulated": simulated.String()} {
			lines := strings.SplitAfter(all, "\n")
			at := -1 // the last release
			for i, line := range lines {
				if strings.Contains(line, `"slots"`) {
					at = i
				}
			}
			for _, forge := range []struct{ what, from, to string }{
				{"mechanism", `"mechanism":\{[^}]*\}`, `"mechanism":{"mechanism":"laplace","scale":1e6}`},
				{"slots", `"slots":\[\d+`, `"slots":[1000000`},
				{"tail", `"h":[0-9.e+-]+`, `"h":1e-3`},
				{"tail", `"log":[0-9.e+-]+`, `"log":0.5`},
				{"tail", `"sigma":[0-9.e+-]+`, `"sigma":0.5`},
				{"counts", `"n":\[(\d+)`, `"n":[1$1`},
			} {
				forged := slices.Clone(lines)
				forged[at] = regexp.MustCompile(forge.from).ReplaceAllString(lines[at], forge.to)
				if forged[at] == lines[at] {
					t.Fatalf("%s: nothing was forged in %s", forge.what, lines[at])
				}
				_, err := Replay(strings.NewReader(rechained(t, forged)))
				if want := fmt.Sprintf("line %d: the %s of the release", at+1,
					forge.what); !errors.Is(err, ErrTranscript) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %s, forged %s: %v, want %q", r.Name(), source, forge.what, err, want)
				}
			}
		}
	}
}

// A line that is changed, left out, doubled, put elsewhere or cut off at the end breaks the chain,
// and is refused by its line.
func TestReplayRefusesBrokenChains(t *testing.T) {
	r := rule(t, "adap-tt", 3, privacy.Pure{Epsilon: 1}, nil)
	all := transcribed(t, r, doses(100_000, 0.1, 0.95, 0.2))
	lines := strings.SplitAfter(strings.TrimSuffix(all, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	refused := func(what string, lines []string, at int, want string) {
		t.Helper()
		_, err := Replay(strings.NewReader(strings.Join(lines, "")))
		if full := fmt.Sprintf("line %d: %s", at, want); !errors.Is(err, ErrTranscript) ||
			!strings.Contains(err.Error(), full) {
			t.Errorf("%s: %v, want %q", what, err, full)
		}
	}
	const broken = "it does not follow the line before"
	for i := range lines {
		if i > 0 && i < len(lines)-1 {
			refused("a line is missing", slices.Delete(slices.Clone(lines), i, i+1), i+1, broken)
		}
		// Numbers are changed where it changes no play, too.
		changed := slices.Clone(lines)
		changed[i] = regexp.MustCompile(`"sum":\[[^,\]]*`).ReplaceAllString(changed[i], `"sum":[1.5`)
		if changed[i] != lines[i] && i < len(lines)-1 {
			refused("a sum is changed", changed, i+2, broken)
		}
		if i > 1 {
			swapped := slices.Clone(lines)
			swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			refused("two lines are swapped", swapped, i, broken)
			// All that is cut off ends the file where no end is.
			refused("the end is cut off", lines[:i], i+1, "the trial has no end")
		}
	}
	header := slices.Clone(lines)
	header[0] = strings.Replace(header[0], `"arms":["a"`, `"arms":["z"`, 1)
	refused("an arm has another name", header, 2, broken)
	refused("something follows the end", append(slices.Clone(lines), lines[len(lines)-1]),
		len(lines)+1, "there is something after the end")
}

// A line that another reader could read otherwise is refused, though it reads as the trial's: whose
// first field of a name counts, or whose letters do.
func TestReplayRefusesLinesWithTwoReadings(t *testing.T) {
	all := transcribed(t, rule(t, "adap-tt", 3, privacy.Pure{Epsilon: 1}, nil), doses(100_000, 0.1, 0.95, 0.2))
	lines := strings.SplitAfter(all, "\n")
	line := map[string]int{}
	for i, text := range lines {
		for _, kind := range []string{`"trial"`, `"plays"`, `"slots"`, `"end"`} {
			if strings.Contains(text, kind) {
				line[kind] = i
			}
		}
	}
	if _, err := Replay(strings.NewReader(rechained(t, lines))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ kind, from, to string }{
		{`"trial"`, `"budget":`, `"budget":{"epsilon":0.001},"budget":`},
		{`"trial"`, `"risk":`, `"risk":1e-9,"risk":`},
		{`"trial"`, `{"epsilon":1}`, `{"Epsilon":0.001,"epsilon":1}`},
		{`"trial"`, `"range":`, `"Range":[0,1],"range":`},
		{`"trial"`, "}\n", "} {\"rewards\":[1,0,1]}\n"},
		{`"plays"`, `"plays":`, `"Plays":`},
		{`"plays"`, `"rounds":`, `"rounds":7,"rounds":`},
		{`"slots"`, `"n":`, `"sum":[1,0,1],"n":`},
		{`"slots"`, `"sum":`, `"SUM":`},
		{`"slots"`, `"tail":`, `"tail":{"h":1e-3},"tail":`},
		{`"slots"`, `"scale":`, `"scale":1e6,"scale":`},
		{`"slots"`, "}\n", ",\"sum\":[null,null,null]}\n"},
		{`"end"`, `"answer":`, `"answer":7,"answer":`},
	} {
		forged := slices.Clone(lines)
		at := line[c.kind]
		if forged[at] = strings.Replace(lines[at], c.from, c.to, 1); forged[at] == lines[at] {
			t.Fatalf("nothing was forged in %s", lines[at])
		}
		_, err := Replay(strings.NewReader(rechained(t, forged)))
		if want := fmt.Sprintf("line %d: ", at+1); !errors.Is(err, ErrTranscript) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s for %s: %v, want %q", c.to, c.from, err, want)
		}
	}
}

// rechained chains lines anew, as whoever rewrites a whole transcript can.
func rechained(t testing.TB, lines []string) string {
	t.Helper()
	var out bytes.Buffer
	c := &chain.Writer{W: &out}
	for _, line := range lines {
		if line = unlinked.ReplaceAllString(line, "{"); !strings.HasPrefix(line, "{") ||
			!strings.HasSuffix(line, "\n") {
			out.WriteString(line)
			continue
		}
		if _, err := c.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

var unlinked = regexp.MustCompile(`^\{"after":"[0-9a-f]*",`)
