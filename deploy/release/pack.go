package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A file is one of an archive: its name there, with slashes, and what is in it.
type file struct {
	in   string // where it is from, if it is of the commit
	to   string
	data []byte
	mode int64 // 0: 0644
}

// files are those of a target: the program, whose name is first, the terms of what it is made of, and texts.
func (p *plan) files(ctx context.Context, t target, program string, texts []file) ([]file, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	terms, err := p.licenses(ctx, t)
	if err != nil {
		return nil, err
	}
	return append([]file{{to: filepath.Base(program), data: data, mode: 0o755}, {to: "LICENSES.txt", data: terms}},
		texts...), nil
}

// archive writes a target's files: a zip for Windows, and what tar and gzip read for others.
func (p *plan) archive(t target, files []file) error {
	name := p.name(t.String())
	dir := filepath.Base(name)
	files = slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.to, b.to) })
	if t.system == "windows" {
		return write(name+".zip", func(w io.Writer) error { return writeZip(w, dir, files, p.at) })
	}
	return write(name+".tar.gz", func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := writeTar(z, dir, files, p.at); err != nil {
			return err
		}
		return z.Close()
	})
}

// writeTar has no owner but root, and no time but one. dir stands before all names; empty for none.
func writeTar(w io.Writer, dir string, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		name := f.to
		if dir != "" {
			name = dir + "/" + name
		}
		h := &tar.Header{Name: name, Mode: cmp.Or(f.mode, 0o644), Size: int64(len(f.data)), ModTime: at,
			Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(w io.Writer, dir string, files []file, at time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: dir + "/" + f.to, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(cmp.Or(f.mode, 0o644)))
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}

// write makes a file that was not there.
func write(name string, do func(io.Writer) error) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return do(f)
}

// checksums writes SHA256SUMS, which sha256sum -c reads, of all that is there.
func (p *plan) checksums() error {
	entries, err := os.ReadDir(p.out) // sorted by name
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, e := range entries {
		f, err := os.Open(filepath.Join(p.out, e.Name()))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", h.Sum(nil), e.Name())
	}
	return write(filepath.Join(p.out, "SHA256SUMS"), func(w io.Writer) error {
		_, err := w.Write(sums.Bytes())
		return err
	})
}
