// Package atomicfile writes files that are there whole or not at all: under another name in the
// same directory, synced, renamed. It needs of a system only what package os promises on all of
// them: on Windows too, os.Rename replaces the file that is there, unless another program holds it
// open, which is an error.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// A File is being written and has not its name yet.
type File struct {
	*os.File
	path string
	done bool
}

// Create opens a file that will be at path, in a directory that must be there, with these
// permissions less the umask.
func Create(path string, perm fs.FileMode) (*File, error) {
	dir, base := filepath.Split(path)
	name := dir + "." + base + "." + rand.Text()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
}

// Replace gives the file its name, in place of what has it. After an error nothing is left behind,
// and what was there still is.
func (f *File) Replace() error {
	if f.done {
		return &fs.PathError{Op: "replace", Path: f.path, Err: fs.ErrClosed}
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Discard())
	}
	f.done = true
	err := f.Close() // an open file cannot be renamed on Windows
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Place gives the file its name, and lasts when it returns. A file that is there stays: that is fs.ErrExist.
// After an error nothing is left behind.
func (f *File) Place() error {
	if f.done {
		return &fs.PathError{Op: "place", Path: f.path, Err: fs.ErrClosed}
	}
	err := f.Sync()
	if err == nil {
		err = os.Link(f.Name(), f.path) // which, unlike a rename, fails if the name is taken
	}
	if err = errors.Join(err, f.Discard()); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(f.path))
}

// Discard removes a file that has not its name yet. After Replace it does nothing: it is for a defer.
func (f *File) Discard() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// WriteFile makes a file of these data, in place of the one that has its name.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	f, err := Create(path, perm)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Replace()
}

// WriteOnce writes a file that only its owner can read: whole or not at all, lasting when it
// returns, and never over another, which is fs.ErrExist.
func WriteOnce(path string, data []byte) error {
	f, err := Create(path, 0o600)
	if err != nil {
		var cause *fs.PathError
		if errors.As(err, &cause) { // its path is one of ours
			err = cause.Err
		}
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Discard())
	}
	return f.Place()
}

// MakeDir makes a directory that only its owner can read, and those above it, unless it is there.
// It lasts when MakeDir returns: what is written into a directory is lost with it.
func MakeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := MakeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if info, e := os.Stat(dir); e == nil && info.IsDir() { // another process was faster
			return nil
		}
		return err
	}
	return SyncDir(above)
}

// SyncDir makes a new name in a directory last. Some systems cannot; there it is left to them.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && runtime.GOOS != "windows" {
		return err
	}
	return nil
}
