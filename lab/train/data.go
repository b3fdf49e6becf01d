package train

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sotto-dp/sotto/noise"
)

// A Dataset is labelled points. An image is a point whose pixels come channel by channel, row by
// row, from 0 to 1.
type Dataset struct {
	Height, Width, Channels int // 1, d, 1 for points that are no images
	Classes                 int
	X                       [][]float64
	Labels                  []int
}

// Inputs is the number of features.
func (d Dataset) Inputs() int { return d.Height * d.Width * d.Channels }

// Slice is the points from lo up to hi. It shares them.
func (d Dataset) Slice(lo, hi int) Dataset {
	d.X, d.Labels = d.X[lo:hi:hi], d.Labels[lo:hi:hi]
	return d
}

// Pool is the points as images of fewer pixels: each is the mean of k×k. k must divide height and
// width, and is at least 1.
func (d Dataset) Pool(k int) (Dataset, error) {
	if k < 1 || d.Height%k != 0 || d.Width%k != 0 {
		return Dataset{}, fmt.Errorf("train: pool is %d, must be at least 1, and divide the "+
			"height %d and the width %d",
			k, d.Height, d.Width)
	}
	out := Dataset{d.Height / k, d.Width / k, d.Channels, d.Classes, make([][]float64, len(d.X)), d.Labels}
	for n, x := range d.X {
		if len(x) != d.Inputs() {
			return Dataset{}, fmt.Errorf("train: point %d: %d features, must be %d", n, len(x), d.Inputs())
		}
		mean := make([]float64, out.Inputs())
		for j, v := range x {
			channel, row, column := j/(d.Height*d.Width), j/d.Width%d.Height, j%d.Width
			mean[(channel*out.Height+row/k)*out.Width+column/k] += v / float64(k*k)
		}
		out.X[n] = mean
	}
	return out, nil
}

// Validate reports the first thing wrong with the points.
func (d Dataset) Validate() error {
	if d.Height < 1 || d.Width < 1 || d.Channels < 1 {
		return fmt.Errorf("train: data of shape %d×%d×%d: each must be at least 1", d.Height,
			d.Width, d.Channels)
	}
	if d.Classes < 2 {
		return fmt.Errorf("train: data of %d classes: at least 2", d.Classes)
	}
	if len(d.X) != len(d.Labels) {
		return fmt.Errorf("train: %d points and %d labels", len(d.X), len(d.Labels))
	}
	for i, x := range d.X {
		if err := checkPoint(x, d.Labels[i], d.Inputs(), d.Classes); err != nil {
			return fmt.Errorf("train: point %d: %w", i, err)
		}
	}
	return nil
}

func checkPoint(x []float64, label, inputs, classes int) error {
	if len(x) != inputs {
		return fmt.Errorf("%d features, must be %d", len(x), inputs)
	}
	if label < 0 || label >= classes {
		return fmt.Errorf("label is %d, must be from 0 to %d", label, classes-1)
	}
	return checkFinite("feature", x)
}

func checkFinite(what string, x []float64) error {
	for j, v := range x {
		if v-v != 0 {
			return fmt.Errorf("%s %d is %v, must be finite", what, j, v)
		}
	}
	return nil
}

// Images makes n small images, for tests and examples: each class is a smooth pattern of its own, and
// neighbouring pixels vary together, so that gradients are correlated as they are with photographs.
func Images(n, height, width, channels, classes int, src *noise.Fast) Dataset {
	d := Dataset{height, width, channels, classes, make([][]float64, n), make([]int, n)}
	patterns := make([][]float64, classes)
	for c := range patterns {
		patterns[c] = smooth(d, src)
	}
	for i := range d.X {
		d.Labels[i] = min(classes-1, int(src.Float64()*float64(classes)))
		x := smooth(d, src)
		for j := range x {
			// A grain of its own for each pixel keeps the covariance from being singular.
			v := 0.5 + float64(0.2*patterns[d.Labels[i]][j]) + float64(0.1*x[j]) + float64(0.02*src.Normal())
			x[j] = max(0, min(1, v))
		}
		d.X[i] = x
	}
	return d
}

// smooth is Gaussian noise averaged over 3×3 neighbours, of variance about 1.
func smooth(d Dataset, src *noise.Fast) []float64 {
	raw, x := make([]float64, d.Inputs()), make([]float64, d.Inputs())
	src.Normals(raw)
	for c := range d.Channels {
		for i := range d.Height {
			for j := range d.Width {
				var sum, n float64
				for a := max(0, i-1); a <= min(d.Height-1, i+1); a++ {
					for b := max(0, j-1); b <= min(d.Width-1, j+1); b++ {
						sum += raw[(c*d.Height+a)*d.Width+b]
						n++
					}
				}
				x[(c*d.Height+i)*d.Width+j] = sum / n * 3
			}
		}
	}
	return x
}

// Where says where real data sets are looked for, for a help text.
const Where = `Put the files of a data set, as published and gzipped or not, into one directory:
  Fashion-MNIST: train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz (github.com/zalandoresearch/fashion-mnist; MIT licence; Debian's package dataset-fashion-mnist has them in /usr/share/datasets/fashion-mnist)
  CIFAR-10: data_batch_1.bin … data_batch_5.bin, the binary version (www.cs.toronto.edu/~kriz/cifar.html)`

// ErrFormat is wrapped by errors about files that are not what they should be.
var ErrFormat = errors.New("not in the format")

// Records is a stream of images and labels.
type Records struct {
	Height, Width, Channels, Classes int

	next  func(pixels []byte) (label byte, err error)
	bytes []byte
	count int
}

// Next returns the next image, pixels from 0 to 1, and its label; io.EOF after the last.
func (r *Records) Next() ([]float64, int, error) {
	label, err := r.next(r.bytes)
	if err == io.EOF {
		return nil, 0, io.EOF
	}
	if err != nil {
		return nil, 0, fmt.Errorf("train: record %d: %w", r.count, err)
	}
	if int(label) >= r.Classes {
		return nil, 0, fmt.Errorf("train: record %d: %w: label %d, must be from 0 to %d", r.count,
			ErrFormat, label, r.Classes-1)
	}
	r.count++
	x := make([]float64, len(r.bytes))
	for i, b := range r.bytes {
		x[i] = float64(b) / 255
	}
	return x, int(label), nil
}

// Read reads up to limit records, or all if limit is not positive.
func (r *Records) Read(limit int) (Dataset, error) {
	d := Dataset{Height: r.Height, Width: r.Width, Channels: r.Channels, Classes: r.Classes}
	for limit <= 0 || len(d.X) < limit {
		x, label, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return Dataset{}, err
		}
		d.X, d.Labels = append(d.X, x), append(d.Labels, label)
	}
	if len(d.X) == 0 {
		return Dataset{}, fmt.Errorf("train: %w: no records", ErrFormat)
	}
	return d, nil
}

// IDX reads images and labels in the IDX format of MNIST and Fashion-MNIST, gzipped or not, ten
// classes. It reads as it goes: what a header promises is believed only as far as bytes follow.
func IDX(images, labels io.Reader) (*Records, error) {
	im, err := plain(images)
	if err != nil {
		return nil, fmt.Errorf("train: IDX images: %w", err)
	}
	la, err := plain(labels)
	if err != nil {
		return nil, fmt.Errorf("train: IDX labels: %w", err)
	}
	dims, err := idxHeader(im, 3)
	if err != nil {
		return nil, fmt.Errorf("train: IDX images: %w", err)
	}
	n, err := idxHeader(la, 1)
	if err != nil {
		return nil, fmt.Errorf("train: IDX labels: %w", err)
	}
	if n[0] != dims[0] {
		return nil, fmt.Errorf("train: %w: %d IDX images and %d labels", ErrFormat, dims[0], n[0])
	}
	// 4096 bounds a single image; the number of images costs nothing until they are read.
	if dims[1] < 1 || dims[2] < 1 || dims[1] > 4096 || dims[2] > 4096 {
		return nil, fmt.Errorf("train: %w: IDX images of %d×%d pixels, must be from 1×1 to "+
			"4096×4096", ErrFormat, dims[1], dims[2])
	}
	r := &Records{Height: int(dims[1]), Width: int(dims[2]), Channels: 1, Classes: 10,
		bytes: make([]byte, dims[1]*dims[2])}
	left := dims[0]
	r.next = func(pixels []byte) (byte, error) {
		if left == 0 {
			for _, f := range []*bufio.Reader{im, la} {
				if _, err := f.ReadByte(); err == nil {
					return 0, fmt.Errorf("%w: more bytes than the IDX header has records", ErrFormat)
				} else if err != io.EOF {
					return 0, err
				}
			}
			return 0, io.EOF
		}
		left--
		if _, err := io.ReadFull(im, pixels); err != nil {
			return 0, cut(err, "an IDX image")
		}
		label, err := la.ReadByte()
		if err != nil {
			return 0, cut(err, "an IDX label")
		}
		return label, nil
	}
	return r, nil
}

// idxHeader reads the magic number 0, 0, 8 (unsigned bytes), the number of dimensions, and each as
// four bytes, the highest first.
func idxHeader(f io.Reader, dims int) ([]uint32, error) {
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return nil, cut(err, "the header")
	}
	if want := [4]byte{0, 0, 8, byte(dims)}; magic != want {
		return nil, fmt.Errorf("%w: starts with % x, must be % x: unsigned bytes in %d dimensions",
			ErrFormat, magic, want, dims)
	}
	n := make([]uint32, dims)
	if err := binary.Read(f, binary.BigEndian, n); err != nil {
		return nil, cut(err, "the header")
	}
	return n, nil
}

// CIFAR10 reads the binary version of CIFAR-10, gzipped or not: records of a label and 3×32×32
// pixels, red, green, blue. Several files may be joined by io.MultiReader if none is gzipped.
func CIFAR10(f io.Reader) (*Records, error) {
	in, err := plain(f)
	if err != nil {
		return nil, fmt.Errorf("train: CIFAR-10: %w", err)
	}
	r := &Records{Height: 32, Width: 32, Channels: 3, Classes: 10, bytes: make([]byte, 3*32*32)}
	r.next = func(pixels []byte) (byte, error) {
		label, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(in, pixels); err != nil {
			return 0, cut(err, "a CIFAR-10 record of 3073 bytes")
		}
		return label, nil
	}
	return r, nil
}

func cut(err error, what string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the file ends within %s", ErrFormat, what)
	}
	return err
}

// plain unpacks gzip where the first two bytes say so. No image file of these formats starts like
// that: IDX starts with 0, and 0x1f is no label.
func plain(f io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReader(f)
	head, err := b.Peek(2)
	if err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		return bufio.NewReader(z), nil
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

// OpenFashionMNIST reads up to limit training points, or all if limit is not positive, from the
// files that Where names.
func OpenFashionMNIST(dir string, limit int) (Dataset, error) {
	images, err := openEither(dir, fashionImages)
	if err != nil {
		return Dataset{}, err
	}
	defer images.Close()
	labels, err := openEither(dir, fashionLabels)
	if err != nil {
		return Dataset{}, err
	}
	defer labels.Close()
	r, err := IDX(images, labels)
	if err != nil {
		return Dataset{}, fmt.Errorf("%s: %w", dir, err)
	}
	d, err := r.Read(limit)
	if err != nil {
		return Dataset{}, fmt.Errorf("%s: %w", dir, err)
	}
	return d, nil
}

// FashionMNISTSum is the SHA-256, in hexadecimal, of the published training images and then
// labels, both unpacked.
const FashionMNISTSum = "d9ef4273af5c2e360155dad0c06bd939447bf37a6620db007d69fc79e4732045"

// SumFashionMNIST is the sum, as FashionMNISTSum is, of the files of a directory: the same, if they
// are what was published.
func SumFashionMNIST(dir string) (string, error) {
	h := sha256.New()
	for _, name := range []string{fashionImages, fashionLabels} {
		if err := unpackInto(h, dir, name); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func unpackInto(w io.Writer, dir, name string) error {
	f, err := openEither(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := plain(f)
	if err == nil {
		_, err = io.Copy(w, b)
	}
	if err != nil {
		return fmt.Errorf("train: %s: %w", f.Name(), err)
	}
	return nil
}

// The files of Fashion-MNIST that are read.
const (
	fashionImages = "train-images-idx3-ubyte"
	fashionLabels = "train-labels-idx1-ubyte"
)

// OpenCIFAR10 reads up to limit training points, or all if limit is not positive, from the files
// that Where names.
func OpenCIFAR10(dir string, limit int) (Dataset, error) {
	var all Dataset
	for i := 1; i <= 5 && (limit <= 0 || len(all.X) < limit); i++ {
		d, err := openBatch(dir, fmt.Sprintf("data_batch_%d.bin", i), limit-len(all.X), limit <= 0)
		if err != nil {
			return Dataset{}, err
		}
		if i > 1 {
			d.X, d.Labels = append(all.X, d.X...), append(all.Labels, d.Labels...)
		}
		all = d
	}
	return all, nil
}

func openBatch(dir, name string, limit int, every bool) (Dataset, error) {
	f, err := openEither(dir, name)
	if err != nil {
		return Dataset{}, err
	}
	defer f.Close()
	r, err := CIFAR10(f)
	if err != nil {
		return Dataset{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if every {
		limit = 0
	}
	d, err := r.Read(limit)
	if err != nil {
		return Dataset{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return d, nil
}

func openEither(dir, name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		if z, zerr := os.Open(filepath.Join(dir, name+".gz")); !errors.Is(zerr, os.ErrNotExist) {
			return z, zerr
		}
		return nil, fmt.Errorf("train: neither %s nor %[1]s.gz in %s: %w.\n%s", name, dir,
			os.ErrNotExist, Where)
	}
	return f, err
}
