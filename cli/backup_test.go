package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// sotto backup and sotto restore, beside a service that runs: nothing of a reward is in either, and what is wrong
// is one error that leaves nothing behind.
func TestBackupCommand(t *testing.T) {
	dir := t.TempDir()
	data, file, to := filepath.Join(dir, "data"), filepath.Join(dir, "shop.backup"), filepath.Join(dir, "restored")
	s := startServe(t, "--data", data)
	s.call(201, "POST", "/v1/experiments", shopLive)
	s.call(200, "POST", "/v1/experiments/shop/start", "")
	for i := range 20 {
		d := s.call(200, "POST", "/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit": "u%d"}`, i))
		report, err := json.Marshal(map[string]any{"decision": d["decision"], "reward": canary})
		if err != nil {
			t.Fatal(err)
		}
		s.call(200, "POST", "/v1/experiments/shop/rewards", string(report))
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"is in the store's own directory", []string{"backup", "--data", data, filepath.Join(data, "x")}},
		{"is there already", []string{"backup", "--data", data, filepath.Join(data, "sotto.db")}},
		{"no such file", []string{"backup", "--data", to, file}},
		{"cannot write", []string{"backup", "--data", data, filepath.Join(dir, "none", "x")}},
		{"--database", []string{"backup", "--database", "mysql://x", file}},
		{"--data and --database", []string{"backup", "--data", data, "--database", "postgres://x", file}},
		{"no such file", []string{"restore", "--data", to, file}},
		{"this is no backup of Sotto", []string{"restore", "--data", to, filepath.Join(data, "sotto.db")}},
		{"it is not empty, must be", []string{"restore", "--data", data, file}},
	} {
		if c.args[0] == "restore" && strings.HasPrefix(c.says, "it is not empty") {
			tryCommand(t, exitOK, "", "backup", "--data", data, file)
		}
		_, errs := tryCommand(t, exitUsage, "", c.args...)
		if !strings.Contains(errs, c.says) || strings.Count(strings.TrimSpace(errs), "\n") > 0 && c.says != "--data and --database" {
			t.Errorf("%q: %s", c.args, errs)
		}
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before)+1 {
		t.Errorf("there is %v, was %v", after, before)
	}
	if _, errs := tryCommand(t, exitUsage, "", "backup", "--data", data, file); !strings.Contains(errs, "is there already") {
		t.Error(errs)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if where := spilled(archive, nil); where != "" {
		t.Error("a reward is in the backup:", where)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != privateFile {
		t.Error(info.Mode(), err)
	}
	tryCommand(t, exitOK, "", "restore", "--data", to, file)
	for _, name := range []string{"sotto.db", "sotto.db-wal"} {
		if b, err := os.ReadFile(filepath.Join(to, name)); err == nil && spilled(b, nil) != "" {
			t.Error("a reward is in", name)
		}
	}
	r := startServe(t, "--data", to, "--read-only")
	r.key = s.key
	if x := r.call(200, "GET", "/v1/experiments/shop", ""); x["state"] != "failed" {
		t.Error(x)
	}
	r.call(200, "GET", "/v1/experiments/shop/units/u1", "")
	s.call(200, "GET", "/readyz", "")
}

// A backup that is killed while it writes leaves no file of its name, and a restore no directory.
func TestBackupKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no kill")
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	s := startServe(t, "--data", data)
	s.call(201, "POST", "/v1/experiments", shopLive)
	s.call(200, "POST", "/v1/experiments/shop/start", "")
	s.stop()
	whole := filepath.Join(dir, "whole")
	tryCommand(t, exitOK, "", "backup", "--data", data, whole)
	for i, args := range [][]string{{"backup", "--data", data}, {"restore", whole, "--data"}} {
		for try := range 6 {
			to := filepath.Join(dir, fmt.Sprint("killed", i, try))
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20<<try)*time.Millisecond)
			c := exec.CommandContext(ctx, "sotto", append(args, to)...) // which is killed
			var errs bytes.Buffer
			c.Stderr = &errs
			err := c.Run()
			cancel()
			if _, there := os.Lstat(to); there != nil {
				continue
			}
			again := filepath.Join(dir, fmt.Sprint("again", i, try)) // what is there is whole
			if i == 0 {
				tryCommand(t, exitOK, "", "restore", "--data", again, to)
			} else {
				tryCommand(t, exitOK, "", "backup", "--data", to, again)
			}
			if err != nil && errs.Len() > 0 {
				t.Errorf("%v: %s", err, errs.String())
			}
		}
	}
}
