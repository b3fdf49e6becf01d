package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// An imageOf is the program of a system of the image.
type imageOf struct {
	target  target
	program string
}

// nobody is the image's user, which deploy/Dockerfile has too.
const nobody = 65532

// image writes an OCI layout of an image for all processors, in one tar: skopeo, podman and crane read it.
func (p *plan) image(of []imageOf, work string) error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, one := range of {
		img, err := p.imageFor(one)
		if err != nil {
			return err
		}
		platform := &v1.Platform{OS: one.target.system, Architecture: one.target.processor}
		if one.target.processor == "arm" {
			platform.Variant = "v7"
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: platform}})
	}
	dir := filepath.Join(work, "layout")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": p.version})); err != nil {
		return err
	}
	var all []file
	err = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, at)
		all = append(all, file{to: filepath.ToSlash(name), data: data})
		return err
	})
	if err != nil {
		return err
	}
	return write(p.name("oci.tar"), func(w io.Writer) error { return writeTar(w, "", all, p.at) })
}

// imageFor is the image of a processor: one layer with the program, certificates of authorities, /data and
// /tmp, as deploy/Dockerfile has it.
func (p *plan) imageFor(of imageOf) (v1.Image, error) {
	layer, err := p.layer(of)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: p.at}, CreatedBy: "deploy/release"}}); err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = of.target.system, of.target.processor, v1.Time{Time: p.at}
	if of.target.processor == "arm" {
		config.Variant = "v7"
	}
	config.Config = v1.Config{User: fmt.Sprintf("%d:%[1]d", nobody), WorkingDir: "/data", Entrypoint: []string{"/sotto"},
		Volumes: map[string]struct{}{"/data": {}}, ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Labels: map[string]string{"org.opencontainers.image.version": p.version, "org.opencontainers.image.revision": p.commit,
			"org.opencontainers.image.source":   "https://github.com/sotto-dp/sotto",
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.title": "sotto"}}
	return mutate.ConfigFile(img, config)
}

func (p *plan) layer(of imageOf) (v1.Layer, error) {
	program, err := os.ReadFile(of.program)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	put := func(h tar.Header, data []byte) {
		if err != nil {
			return
		}
		h.Size, h.ModTime, h.Format = int64(len(data)), p.at, tar.FormatUSTAR
		if err = t.WriteHeader(&h); err == nil {
			_, err = t.Write(data)
		}
	}
	certificates := authorities()
	for _, dir := range []string{"data/", "tmp/"} {
		put(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o700, Uid: nobody, Gid: nobody}, nil)
	}
	for _, dir := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/"} {
		put(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
	}
	put(tar.Header{Typeflag: tar.TypeReg, Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, certificates)
	put(tar.Header{Typeflag: tar.TypeReg, Name: "sotto", Mode: 0o755}, program)
	if err != nil {
		return nil, err
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// authorities are the certificates that Mozilla trusts, of the version that go.sum has: those of the machine
// that builds would be others on another one. What Mozilla trusts under a condition is left out, since a
// file of certificates has no conditions.
func authorities() []byte {
	var all []string
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all = append(all, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})))
		}
	}
	slices.Sort(all)
	return []byte(strings.Join(all, ""))
}
