package play

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// What is public of a transcript is enough to play it again, and no other line fits.
func TestJointReplay(t *testing.T) {
	h, err := run(none, ofClinic(), 5, 1500)
	if err != nil {
		t.Fatal(err)
	}
	replay := func(lines [][]byte) (*Replayed, error) {
		cfg := h.config()
		cfg.Contexts, cfg.Vectors = jointPolicy(jointRho), nil
		return Replay(cfg, listed(lines))
	}
	r, err := replay(h.lines)
	if err != nil || r.Released[0] != len(h.counted) || r.Releases[0] != len(h.lines)-h.notes ||
		math.Abs(r.Ledger.Total().ZCDP()-jointRho) > 1e-6*jointRho {
		t.Fatalf("%+v, %v", r, err)
	}
	at := slices.IndexFunc(h.lines, func(l []byte) bool { return bytes.Contains(l, []byte(`"n":8`)) })
	if _, err := replay(slices.Delete(slices.Clone(h.lines), at, at+1)); !errors.Is(err, ErrState) {
		t.Errorf("without a line: %v", err)
	}
	for old, other := range map[string]string{`"slot":0`: `"slot":1`, `"n":8`: `"n":12`, `"sigma":`: `"sigma":1`,
		`"leaf":4`: `"leaf":2`, `{"n":4`: `{"n":4,"gram":[1,2,3]`} {
		lines := slices.Clone(h.lines)
		lines[at] = bytes.Replace(lines[at], []byte(old), []byte(other), 1)
		if _, err := replay(lines); err == nil || bytes.Equal(lines[at], h.lines[at]) {
			t.Errorf("%s for %s is taken: %v", other, old, err)
		}
	}
}

// Segments, and the tree after them, are in the transcript alone: it is played again, and a line that is not
// there, or of the other mechanism, is found out.
func TestSegmentsReplay(t *testing.T) {
	h, err := run(none, ofSegments(), 5, 1500)
	if err != nil {
		t.Fatal(err)
	}
	replay := func(lines [][]byte) (*Replayed, error) {
		cfg := h.config()
		cfg.Contexts, cfg.Vectors = h.game.(*clinic).policy(), nil
		return Replay(cfg, listed(lines))
	}
	r, err := replay(h.lines)
	if err != nil || r.Released[0] != len(h.counted) || r.Releases[0] != len(h.lines)-h.notes ||
		r.Noise.Kind() != "gram-tree" || math.Abs(r.Ledger.Total().ZCDP()-jointRho) > 1e-5*jointRho {
		t.Fatalf("%+v, %v", r, err)
	}
	tree := func(l []byte) bool { return bytes.Contains(l, []byte("gram-tree")) }
	first := slices.IndexFunc(h.lines, tree)
	other := slices.Clone(h.lines)
	other[first] = other[first-1]
	for name, lines := range map[string][][]byte{
		"without the tree's first": slices.Delete(slices.Clone(h.lines), first, first+1),
		"a segment in the tree":    other,
	} {
		if _, err := replay(lines); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJointErrors(t *testing.T) {
	good := func() Config {
		return Config{Contexts: jointPolicy(1), Horizon: jointHorizon, Window: 9, Epoch: Epoch{1}}
	}
	for says, change := range map[string]func(*Config){
		"horizon is 0, must be a multiple of 4": func(c *Config) { c.Horizon = 0 },
		"horizon is 239":                        func(c *Config) { c.Horizon = 239 },
		"horizon is 244":                        func(c *Config) { c.Horizon = 244 },
		"rules has 1, must have none": func(c *Config) {
			c.Rules = []Rule{{Name: "a", Clip: 2, Mechanism: privacy.Gaussian{Sigma: 1}}}
		},
		"horizon is 238, must be a multiple of leaf, 4, up to 240": func(c *Config) {
			c.Contexts, c.Horizon = (&clinic{segments: true}).policy(), 238
		},
		"does not say which decisions": func(c *Config) {
			c.Contexts = struct{ ContextualPolicy }{(&clinic{segments: true}).policy()}
		},
		"must be one that is kept": func(c *Config) {
			c.Vectors = func(fc release.FeatureConfig) (release.FeatureCurator, error) {
				r, err := release.RealFeatures(fc)
				return struct{ release.StepFeatureCurator }{r.(release.StepFeatureCurator)}, err
			}
		},
	} {
		cfg := good()
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	c, err := New(good())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range [][]float64{{0.7312894561, 0}, {2, 0}, {math.NaN(), 0}, {1, 1}, {0.5}} {
		if _, err := c.Decide(Decision{Vector: a}, 0); !errors.Is(err, errPrivate) || err.Error() != errPrivate.Error() {
			t.Errorf("an error tells of a vector: %v", err)
		}
	}
	s := c.State()
	s.Kept = []byte("{}")
	if _, err := Restore(good(), func(func([]byte, error) bool) {}, s); !errors.Is(err, ErrState) {
		t.Errorf("a curator's state without a line: %v", err)
	}
}
