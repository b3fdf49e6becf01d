// Package atomicfile writes files that are there whole or not at all: under another name in the
// same directory, synced, renamed. It needs of a system only what package os promises on all of
// them: on Windows too, os.Rename replaces the file that is there, unless another program holds it
// open, which is an error.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
