package train_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sotto-dp/sotto/lab/train"
	"github.com/sotto-dp/sotto/noise"
)

func idx(dims []uint32, body []byte) []byte {
	b := []byte{0, 0, 8, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return append(b, body...)
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func TestIDX(t *testing.T) {
	images, labels := idx([]uint32{2, 1, 3}, []byte{0, 51, 255, 1, 2, 3}), idx([]uint32{2}, []byte{9, 0})
	for _, pack := range []func([]byte) []byte{func(b []byte) []byte { return b }, zip} {
		r, err := train.IDX(iotest.OneByteReader(bytes.NewReader(pack(images))), bytes.NewReader(pack(labels)))
		if err != nil {
			t.Fatal(err)
		}
		d, err := r.Read(0)
		if err != nil {
			t.Fatal(err)
		}
		if d.Height != 1 || d.Width != 3 || d.Channels != 1 || len(d.X) != 2 || d.Labels[0] != 9 ||
			d.Labels[1] != 0 || d.X[0][1] != 0.2 || d.X[0][2] != 1 || d.X[1][0] != 1./255 {
			t.Errorf("read %+v", d)
		}
		if err := d.Validate(); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		images, labels []byte
		say            string
	}{
		"nothing":    {nil, labels, "ends within the header"},
		"swapped":    {labels, images, "starts with 00 00 08 01"},
		"floats":     {append([]byte{0, 0, 0xd, 3}, images[4:]...), labels, "must be 00 00 08 03"},
		"cut image":  {images[:len(images)-1], labels, "ends within an IDX image"},
		"cut labels": {images, labels[:len(labels)-1], "ends within an IDX label"},
		"too long":   {append(bytes.Clone(images), 1), labels, "more bytes"},
		"counts":     {images, idx([]uint32{3}, []byte{1, 2, 3}), "2 IDX images and 3 labels"},
		"label":      {images, idx([]uint32{2}, []byte{1, 10}), "record 1: not in the format: label 10"},
		"huge image": {idx([]uint32{2, 1 << 31, 1 << 31}, nil), labels, "4096"},
		"no pixels":  {idx([]uint32{2, 0, 3}, nil), labels, "0×3"},
		"many promised": {idx([]uint32{math.MaxUint32, 1, 1}, []byte{1}),
			idx([]uint32{math.MaxUint32}, []byte{1}), "ends within"},
		"none":        {idx([]uint32{0, 1, 1}, nil), idx([]uint32{0}, nil), "no records"},
		"broken gzip": {zip(images)[:15], labels, ""},
	} {
		r, err := train.IDX(bytes.NewReader(c.images), bytes.NewReader(c.labels))
		if err == nil {
			_, err = r.Read(0)
		}
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, must say %q", name, err, c.say)
		} else if c.say != "" && !errors.Is(err, train.ErrFormat) {
			t.Errorf("%s: %v is not ErrFormat", name, err)
		}
	}
}

func TestCIFAR10(t *testing.T) {
	record := func(label byte) []byte {
		b := []byte{label}
		for i := range 3072 {
			b = append(b, byte(i/1024)*51)
		}
		return b
	}
	both := append(record(3), record(7)...)
	for _, b := range [][]byte{both, zip(both)} {
		r, err := train.CIFAR10(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		d, err := r.Read(0)
		if err != nil || len(d.X) != 2 || d.Labels[1] != 7 || d.X[0][0] != 0 ||
			d.X[0][1024] != 0.2 || d.X[1][3071] != 0.4 || d.Validate() != nil {
			t.Errorf("%v, %d records", err, len(d.X))
		}
	}
	for _, c := range []struct {
		b   []byte
		say string
	}{{nil, "no records"}, {both[:3074], "3073"}, {record(10), "label 10"}} {
		r, err := train.CIFAR10(bytes.NewReader(c.b))
		if err == nil {
			_, err = r.Read(0)
		}
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v, must say %q", err, c.say)
		}
	}
}

// Files as they are published, in a directory.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := train.OpenFashionMNIST(dir, 0); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "Put the files") {
		t.Errorf("nothing there: %v", err)
	}
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("train-images-idx3-ubyte.gz", zip(idx([]uint32{3, 1, 1}, []byte{1, 2, 3})))
	write("train-labels-idx1-ubyte", idx([]uint32{3}, []byte{4, 5, 6}))
	if d, err := train.OpenFashionMNIST(dir, 2); err != nil || len(d.X) != 2 || d.Labels[1] != 5 {
		t.Errorf("%+v, %v", d, err)
	}
	for i := range 5 {
		write("data_batch_"+string(rune('1'+i))+".bin", append([]byte{byte(i)}, make([]byte, 3072)...))
	}
	if d, err := train.OpenCIFAR10(dir, 0); err != nil || len(d.X) != 5 || d.Labels[4] != 4 {
		t.Errorf("%d records, %v", len(d.X), err)
	}
	if d, err := train.OpenCIFAR10(dir, 3); err != nil || len(d.X) != 3 {
		t.Errorf("%d records, %v", len(d.X), err)
	}
}

// The made-up sample has the format of Fashion-MNIST, ten classes of stripes.
const sample = "testdata/fashion-mnist"

func TestSumFashionMNIST(t *testing.T) {
	packed, err := train.SumFashionMNIST(sample)
	if err != nil || packed == train.FashionMNISTSum {
		t.Fatalf("%s, %v", packed, err)
	}
	// The sum is of the contents, not of how they are packed.
	dir := t.TempDir()
	for _, name := range []string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"} {
		f, err := os.Open(filepath.Join(sample, name+".gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err := errors.Join(err, f.Close(), os.WriteFile(filepath.Join(dir, name), b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if plain, err := train.SumFashionMNIST(dir); err != nil || plain != packed {
		t.Errorf("unpacked %s, %v; packed %s", plain, err, packed)
	}
	labels := filepath.Join(dir, "train-labels-idx1-ubyte")
	if err := os.WriteFile(labels, []byte{0, 0, 8, 1}, 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := train.SumFashionMNIST(dir); err != nil || other == packed {
		t.Errorf("other labels: %s, %v", other, err)
	}
	if err := os.Remove(labels); err != nil {
		t.Fatal(err)
	}
	if _, err := train.SumFashionMNIST(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no labels: %v", err)
	}
}

// What was published: with SOTTO_FASHION_MNIST=DIR, the data are the 60 000 images they should be.
func TestPublishedFashionMNIST(t *testing.T) {
	dir := os.Getenv("SOTTO_FASHION_MNIST")
	if dir == "" {
		t.Skip("SOTTO_FASHION_MNIST is not set: no data set comes with this program")
	}
	if sum, err := train.SumFashionMNIST(dir); err != nil || sum != train.FashionMNISTSum {
		t.Fatalf("%s, %v", sum, err)
	}
	d, err := train.OpenFashionMNIST(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var bytes, squares float64
	classes := map[int]int{}
	for i, x := range d.X {
		classes[d.Labels[i]]++
		for _, v := range x {
			b := math.Round(255 * v)
			bytes, squares = bytes+b, squares+b*b
		}
	}
	n := 60000. * 784
	mean := bytes / n / 255
	sd := math.Sqrt(squares/n/255/255 - mean*mean)
	// The constants that everybody normalizes by.
	if len(d.X) != 60000 || bytes != 3431114169 || math.Abs(mean-0.2860) > 5e-5 || math.Abs(sd-0.3530) > 5e-5 {
		t.Errorf("%d images, pixels add up to %.0f, mean %.4f, deviation %.4f", len(d.X), bytes, mean, sd)
	}
	for c := range 10 {
		if classes[c] != 6000 {
			t.Errorf("class %d has %d images", c, classes[c])
		}
	}
}

func TestPool(t *testing.T) {
	d := train.Dataset{Height: 2, Width: 4, Channels: 2, Classes: 2, Labels: []int{1}, X: [][]float64{{
		1, 2, 10, 20,
		3, 4, 30, 40,

		0, 0, 8, 8,
		0, 4, 8, 8,
	}}}
	p, err := d.Pool(2)
	if err != nil || p.Height != 1 || p.Width != 2 || p.Channels != 2 || p.Labels[0] != 1 ||
		!slices.Equal(p.X[0], []float64{2.5, 25, 1, 8}) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := d.Pool(1); err != nil || !slices.Equal(p.X[0], d.X[0]) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, k := range []int{-1, 0, 3, 4, math.MaxInt} {
		if _, err := d.Pool(k); err == nil || !strings.Contains(err.Error(), "pool is ") {
			t.Errorf("pool %d: %v", k, err)
		}
	}
	d.X[0] = d.X[0][:15]
	if _, err := d.Pool(2); err == nil || !strings.Contains(err.Error(), "15 features") {
		t.Errorf("a cut image: %v", err)
	}
	whole, err := train.OpenFashionMNIST(sample, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := whole.Pool(4); err != nil || len(p.X) != 12 || p.Inputs() != 49 ||
		p.Validate() != nil || p.X[0][0] != 0 ||
		math.Abs(p.X[3][8]-75./255) > 1e-12 || math.Abs(p.X[3][7]-60./255) > 1e-12 &&
		math.Abs(p.X[3][7]-75./255) > 1e-12 {
		t.Errorf("%+v, %v", p.X[3], err)
	}
}

func TestImagesAreCorrelated(t *testing.T) {
	src := noise.NewFast(6, 6)
	d := train.Images(300, 4, 4, 1, 2, &src)
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	var xy, xx, yy, x, y float64
	for _, p := range d.X {
		x, y = x+p[5]/300, y+p[6]/300
	}
	for _, p := range d.X {
		xy, xx, yy = xy+(p[5]-x)*(p[6]-y), xx+(p[5]-x)*(p[5]-x), yy+(p[6]-y)*(p[6]-y)
	}
	if r := xy / math.Sqrt(xx*yy); r < 0.2 {
		t.Errorf("neighbouring pixels have correlation %v", r)
	}
}

// Whatever the bytes are, reading ends with points or an error, and takes no more memory than
// there are bytes.
func FuzzIDX(f *testing.F) {
	f.Add(idx([]uint32{2, 1, 3}, []byte{0, 51, 255, 1, 2, 3}), idx([]uint32{2}, []byte{9, 0}))
	f.Add(zip(idx([]uint32{1, 1, 1}, []byte{0})), idx([]uint32{1}, []byte{1}))
	f.Add([]byte{0x1f, 0x8b}, []byte{})
	f.Fuzz(func(t *testing.T, images, labels []byte) {
		r, err := train.IDX(bytes.NewReader(images), bytes.NewReader(labels))
		if err != nil {
			return
		}
		checkRead(t, r)
	})
}

func FuzzCIFAR10(f *testing.F) {
	f.Add(make([]byte, 3073))
	f.Add(zip(make([]byte, 3073)))
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := train.CIFAR10(bytes.NewReader(b))
		if err != nil {
			return
		}
		checkRead(t, r)
	})
}

func checkRead(t *testing.T, r *train.Records) {
	for n := 0; n < 100; n++ {
		x, label, err := r.Next()
		if err != nil {
			if x != nil || err != io.EOF && !strings.HasPrefix(err.Error(), "train: record ") {
				t.Fatalf("%v, %v", x, err)
			}
			return
		}
		if len(x) != r.Height*r.Width*r.Channels || label < 0 || label >= r.Classes {
			t.Fatalf("%d features, label %d", len(x), label)
		}
		for _, v := range x {
			if v < 0 || v > 1 {
				t.Fatalf("a pixel of %v", v)
			}
		}
	}
}
