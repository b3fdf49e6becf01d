package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sotto-dp/sotto/internal/atomicfile"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/parquetlog"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/logged"
)

// Modes of files: what anyone may read, and what holds rewards, exact sums of them or what was
// computed from these.
const (
	publicFile  = 0o644
	privateFile = 0o600
)

// openInput opens a file to read; - is standard input.
func openInput(path string, s streams) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(s.in), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, usage(err)
	}
	return f, nil
}

// readLog reads a log of a kind that is known; - is standard input. An error is the caller's.
func readLog(path string, s streams, d logged.Dialect, read func(io.Reader) error) error {
	in, err := openInput(path, s)
	if err != nil {
		return err
	}
	defer in.Close()
	csv, err := parquetlog.AsCSV(in, d)
	if err == nil {
		err = read(csv)
	}
	if err != nil {
		return usagef("%s: %w", path, err)
	}
	return nil
}

// readAny reads an experiment or a live one; - is standard input. The name is what messages call
// the file.
func readAny(path string, s streams) (spec *experiment.Spec, live *decl.Experiment, name string,
	err error) {
	if name = path; path == "-" {
		name = "standard input"
	}
	in, err := openInput(path, s)
	if err != nil {
		return nil, nil, name, err
	}
	defer in.Close()
	data, err := keyed.ReadFile(in, name)
	if err != nil {
		return nil, nil, name, err
	}
	if (decl.Reader{Catalog: s.known}).Is(data) {
		live, err = decl.Reader{Catalog: s.known}.Parse(name, data)
		return nil, live, name, err
	}
	spec, err = experiment.Reader{Catalog: s.known}.Parse(name, data)
	return spec, nil, name, err
}

// pending opens a file that will be at path whole or not at all. It is for before the work: work is
// not lost to a place where nothing can be written.
func pending(flag, path string, mode os.FileMode) (*atomicfile.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, usagef("%s: %s is there and is no regular file: name another", flag, path)
	}
	f, err := atomicfile.Create(path, mode)
	if err != nil {
		var cause *fs.PathError
		if errors.As(err, &cause) { // its path is one of ours
			err = cause.Err
		}
		return nil, usagef("%s: cannot write %s: %w", flag, path, err)
	}
	return f, nil
}

// save writes a file whole or not at all.
func save(flag, path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := pending(flag, path, mode)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err = write(f); err == nil {
		err = f.Replace()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// canHold checks that files can be written to a directory, which need not be there yet, and
// leaves nothing behind.
func canHold(flag, dir string) error {
	at := dir
	for {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return usagef("%s: %s is no directory", flag, at)
		}
		if err == nil {
			break
		}
		up := filepath.Dir(at)
		if up == at || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return usagef("%s: %w", flag, err)
		}
		at = up
	}
	trial, err := os.MkdirTemp(at, ".sotto-")
	if err != nil {
		var cause *fs.PathError
		if errors.As(err, &cause) { // its path is one of ours
			err = cause.Err
		}
		return usagef("%s: cannot write to %s: %w", flag, at, err)
	}
	return os.Remove(trial)
}
