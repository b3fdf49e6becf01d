package play

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// toldAll is a gathered curator that is told of each row of decisions when it is counted.
type toldAll struct{ *release.Gathered }

func (c toldAll) AddSteps(arm, n int, steps int64) error {
	if err := c.Gathered.AddSteps(arm, n, steps); err != nil {
		return err
	}
	return c.AddNoisy(arm, n, int64(n)<<19)
}

// gatheredLines are the lines of a play of some policy under a trust model.
func gatheredLines(t *testing.T, cfg Config) [][]byte {
	t.Helper()
	cfg.Epoch = Epoch{1}
	cfg.Curator = func(c release.Config) (release.Curator, error) {
		g, err := release.RealGathered(c, cfg.Gathering)
		return toldAll{g}, err
	}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	for now := int64(0); len(lines) < 4; now++ {
		if _, err := l.Decide(l.Arm(), now); err != nil {
			t.Fatal(err)
		}
		c, err := l.Close(now)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		lines = append(lines, c.Line)
		if err := l.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// A transcript of sums that were gathered is replayed with the trust model that it was made under,
// and with no other; what it costs is what central trust does.
func TestReplayGathered(t *testing.T) {
	models := []release.Gathering{{Trust: privacy.TrustTwoServer}, {Trust: privacy.TrustLocal},
		{Trust: privacy.TrustSecAgg, Users: 5}}
	for _, g := range models {
		cfg := func(g release.Gathering) Config {
			return Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 20, Gathering: g}
		}
		lines := gatheredLines(t, cfg(g))
		r, err := Replay(cfg(g), each(lines))
		if err != nil {
			t.Fatalf("%s: %v", g.Trust, err)
		}
		if m, ok := r.Noise.(privacy.Aggregated); !ok || m.Trust != g.Trust {
			t.Errorf("%s: the noise is %v", g.Trust, r.Noise)
		}
		if scale := privacy.ScaleOf(cfg(g).Policy.Mechanism()); r.Ledger.Total().Pure() > 1/scale {
			t.Errorf("%s: it has cost %v, must be at most %v", g.Trust, r.Ledger.Total().Pure(), 1/scale)
		}
		for _, other := range append(models, release.Gathering{}, release.Gathering{Trust: privacy.TrustSecAgg,
			Users: 4}) {
			if other == g {
				continue
			}
			if _, err := Replay(cfg(other), each(lines)); !errors.Is(err, ErrState) {
				t.Errorf("%s is replayed as %v: %v", g.Trust, other, err)
			}
		}
		for old, new := range map[string]string{`"num":`: `"num":1`, `"invited":`: `"invited":1`,
			`"sigma":`: `"sigma":1`} {
			twin := append([][]byte{bytes.Replace(lines[0], []byte(old), []byte(new), 1)}, lines[1:]...)
			if _, err := Replay(cfg(g), each(twin)); err == nil {
				t.Errorf("%s: a line with %s is replayed", g.Trust, new)
			}
		}
	}
}

// What cannot be gathered is refused.
func TestGatheringIsChecked(t *testing.T) {
	g := release.Gathering{Trust: privacy.TrustTwoServer}
	for want, change := range map[string]func(*Config){
		"there are metrics": func(c *Config) { *c = withMetric(*c) },
		"drop is true":      func(c *Config) { c.Drop = true },
		"users is 3":        func(c *Config) { c.Gathering.Users = 3 },
	} {
		cfg := Config{Policy: policies(t)["dp-klucb"](), Arms: 3, Window: 20, Gathering: g, Epoch: Epoch{1}}
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
