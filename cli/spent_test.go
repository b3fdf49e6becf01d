package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// What fails after real data were spent on is no bad input, which would be corrected and tried
// again, and says what was spent.
func TestFailuresAfterARelease(t *testing.T) {
	t.Chdir(t.TempDir())
	var log strings.Builder
	log.WriteString("arm,reward\n")
	coins := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		fmt.Fprintf(&log, "a,%d\nb,%d\n", coins.IntN(10)/9, (coins.IntN(10)+8)/9)
	}
	if err := os.WriteFile("log.csv", []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"epsilon=1": {"identify", "--csv", "log.csv", "--range", "0,1", "--epsilon", "1", "--risk", "0.05"},
		"epsilon=5": {"stop", "--rule", "dp-exp-nas", "--alpha", "0.9", "--beta", "0.1",
			"--epsilon", "5", "--range", "1", "--csv", "log.csv", "--column", "reward"},
		"epsilon=1.0": {"identify", "--csv", "log.csv", "--range", "0,1", "--epsilon", "1",
			"--risk", "0.05", "--transcript", "trial.jsonl"},
	} {
		var stderr bytes.Buffer
		code := run(context.Background(), args, streams{in: strings.NewReader(""), out: full{}, err: &stderr})
		want = strings.TrimSuffix(want, ".0")
		if got := stderr.String(); code != exitFailed || !strings.Contains(got, "no space left") ||
			!strings.Contains(got, "it has been spent: "+want) {
			t.Errorf("%q: exit code %d: %s", args, code, got)
		}
	}
	if b, err := os.ReadFile("trial.jsonl"); err != nil || !bytes.Contains(b, []byte(`"end":"answer"`)) {
		t.Errorf("the transcript is %q, %v", b, err)
	}

	// A transcript that breaks off stays, as far as it goes; one that gets no name is told of.
	c := &identifyCommand{Transcript: "broken.jsonl"}
	lost := privacy.LossOf(privacy.Pure{Epsilon: 1})
	err := c.transcribe(true, privateFile, func(w io.Writer) (privacy.Loss, error) {
		if _, err := io.WriteString(w, "a release\n"); err != nil {
			t.Fatal(err)
		}
		return lost, errors.New("no space left")
	})
	if b, e := os.ReadFile("broken.jsonl"); err == nil || e != nil || string(b) != "a release\n" {
		t.Errorf("%v; the transcript is %q, %v", err, b, e)
	}
	if err := os.Mkdir("gone", 0o700); err != nil {
		t.Fatal(err)
	}
	c.Transcript = filepath.Join("gone", "trial.jsonl")
	err = c.transcribe(true, privateFile, func(io.Writer) (privacy.Loss, error) {
		return lost, os.RemoveAll("gone")
	})
	if err == nil || exitCode(err) != exitFailed ||
		!strings.Contains(err.Error(), "it has been spent: epsilon=1") {
		t.Errorf("no place for the transcript: %v", err)
	}
	c.Transcript = "nothing.jsonl"
	err = c.transcribe(true, privateFile, func(io.Writer) (privacy.Loss, error) {
		return privacy.Loss{}, errors.New("no space left")
	})
	if _, e := os.Stat("nothing.jsonl"); err == nil || !os.IsNotExist(e) {
		t.Errorf("nothing was spent: %v, %v", err, e)
	}
}
