package experiment_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"github.com/sotto-dp/sotto/lab/experiment"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Two logs of the same names and sizes, in two directories.
func logged(t *testing.T, rewards string) *experiment.Spec {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"log.csv": rewards,
		"e.yaml": "name: logged\nhorizon: 50\nruns: 2\nseed: 1\nrange: [0, 1]\ninstances: " +
			"[{name: people, csv: log.csv}]\npolicies: [{policy: adap-klucb}]\nbudgets: [{epsilon: 1}]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := experiment.Reader{}.Read(filepath.Join(dir, "e.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	someRewards  = "arm,reward\na,0.1\na,0.25\nb,0.5\nb,0.75\n"
	otherRewards = "arm,reward\na,0.1\na,0.25\nb,0.5\nb,0.76\n"
)

// The manifest and the page of an experiment on logged rewards say that it is as private as they
// are, and nothing in them, hashes included, tells two logs of the same names and sizes apart but
// the results. What the directory holds is its owner's alone.
func TestLoggedRewardsLeaveNoHash(t *testing.T) {
	ctx := context.Background()
	var manifests [][]byte
	for _, rewards := range []string{someRewards, otherRewards} {
		s, dir := logged(t, rewards), filepath.Join(t.TempDir(), "out")
		r, err := experiment.Run(ctx, s, experiment.Options{Out: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Draw(dir); err != nil {
			t.Fatal(err)
		}
		if w := strings.Join(r.Manifest.Warnings, "\n"); strings.Count(w, "as private as the log") != 1 {
			t.Errorf("warnings: %s", w)
		}
		raw := sha256.Sum256([]byte(rewards))
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			if d.IsDir() {
				return nil
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(hex.EncodeToString(raw[:]))) || bytes.Contains(b, raw[:]) {
				t.Errorf("%s holds the hash of the log", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(dir, "report.html"))
		if err != nil || !bytes.Contains(page, []byte("as private as the log")) {
			t.Errorf("the page does not say it: %v", err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		before, _, _ := bytes.Cut(b, []byte(`"started"`))
		manifests = append(manifests, before)
	}
	if !bytes.Equal(manifests[0], manifests[1]) {
		t.Errorf("the manifests tell two logs apart:\n%s\n%s", manifests[0], manifests[1])
	}
}

// Though no hash tells, a run is not gone on with on another log, and shards of two are not joined.
func TestAnotherLogIsNoticed(t *testing.T) {
	ctx := context.Background()
	one, two := logged(t, someRewards), logged(t, otherRewards)
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := experiment.Run(ctx, one, experiment.Options{Out: dir}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*experiment.Spec{one, two} {
		p, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		m, err := experiment.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		if m.SpecHash != p.Hash || m.Plays(p) != (s == one) {
			t.Errorf("hashes %s and %s, plays %v", m.SpecHash, p.Hash, m.Plays(p))
		}
	}
	if _, err := experiment.Run(ctx, one, experiment.Options{Out: dir, Resume: true}); err != nil {
		t.Error(err)
	}
	if _, err := experiment.Run(ctx, two, experiment.Options{Out: dir,
		Resume: true}); !errors.Is(err, experiment.ErrOutput) ||
		!strings.Contains(err.Error(), "other logged rewards") {
		t.Errorf("resumed on another log: %v", err)
	}
	var dirs []string
	for i, s := range []*experiment.Spec{one, two} {
		dirs = append(dirs, filepath.Join(t.TempDir(), "shard"))
		if _, err := experiment.Run(ctx, s, experiment.Options{Out: dirs[i], ShardI: i,
			ShardN: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := experiment.Merge(ctx, dirs, filepath.Join(t.TempDir(), "merged"),
		false); !errors.Is(err, experiment.ErrShards) ||
		!strings.Contains(err.Error(), "other logged rewards") {
		t.Errorf("merged two logs: %v", err)
	}
	// A copy without the fingerprint, to be shown, still loads.
	if err := os.Remove(filepath.Join(dir, "log.fingerprint")); err != nil {
		t.Fatal(err)
	}
	if _, err := experiment.Load(dir); err != nil {
		t.Error(err)
	}
	if _, err := experiment.Run(ctx, one, experiment.Options{Out: dir,
		Resume: true}); !errors.Is(err, experiment.ErrOutput) {
		t.Errorf("resumed without a fingerprint: %v", err)
	}
}
