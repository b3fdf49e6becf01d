package secagg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cloudflare/circl/vdaf/prio3/arith/fp128"
)

// Shamir's secret sharing over the prime field of 2^128 − 28·2^64 + 1 elements of circl: the
// secret is a polynomial's value at 0, a share is its value at a seat 1…K. The secrets are
// uniform field elements, from which keys are derived, so that no key has to be cut into pieces
// and a share takes 16 bytes.

const shareSize = fp128.Size

type field = fp128.Fp

// draw is a uniform field element.
func draw(rnd io.Reader) (f field, err error) {
	if err := f.Random(rnd); err != nil {
		return f, fmt.Errorf("secagg: drawing a secret: %w", err)
	}
	return f, nil
}

// split shares secret among the seats 1…k, any t of which give it back.
func split(rnd io.Reader, secret field, k, t int) ([]field, error) {
	p := make(fp128.Poly, t)
	p[0] = secret
	if err := fp128.Vec(p[1:]).Random(rnd); err != nil {
		return nil, fmt.Errorf("secagg: drawing shares: %w", err)
	}
	shares := make([]field, k)
	for i := range shares {
		x := small(uint64(i + 1))
		shares[i] = p.Evaluate(&x)
	}
	return shares, nil
}

// small is a small whole number as a field element.
func small(v uint64) (f field) {
	// SetUint64 cannot fail in a field above 2^64.
	if err := f.SetUint64(v); err != nil {
		panic(err)
	}
	return f
}

// weights are Lagrange's for the value at 0 from the values at seats: λ_i = Π_{j≠i} x_j/(x_j −
// x_i). They are public, so time may depend on them; one inversion serves all.
func weights(seats []int) []field {
	n := len(seats)
	den := make([]field, n)
	for i, xi := range seats {
		den[i].SetOne()
		negative := false
		for j, xj := range seats {
			if i == j {
				continue
			}
			d := xj - xi
			if d < 0 {
				d, negative = -d, !negative
			}
			f := small(uint64(d))
			den[i].MulAssign(&f)
		}
		if negative {
			var zero field
			den[i].Sub(&zero, &den[i])
		}
		// λ_i = (Π x_j)/(x_i·Π_{j≠i}(x_j − x_i)).
		x := small(uint64(xi))
		den[i].MulAssign(&x)
	}
	prefix := make([]field, n+1)
	prefix[0].SetOne()
	var all field
	all.SetOne()
	for i := range den {
		prefix[i+1].Mul(&prefix[i], &den[i])
		x := small(uint64(seats[i]))
		all.MulAssign(&x)
	}
	var inv field
	inv.Inv(&prefix[n])
	inv.MulAssign(&all)
	out := make([]field, n)
	for i := n - 1; i >= 0; i-- {
		out[i].Mul(&inv, &prefix[i])
		inv.MulAssign(&den[i])
	}
	return out
}

// combine is the secret of shares at the seats that w belongs to.
func combine(w, shares []field) field { return fp128.Vec(w).DotProduct(shares) }

func appendField(b []byte, f *field) []byte {
	// The field's own encoding is little endian and canonical.
	s, err := f.MarshalBinary()
	if err != nil {
		panic(err)
	}
	return append(b, s...)
}

var errField = errors.New("not a field element")

func readField(b []byte) (f field, err error) {
	if len(b) != shareSize || f.UnmarshalBinary(b) != nil {
		return field{}, errField
	}
	return f, nil
}

func seatsKey(seats []int) string {
	b := make([]byte, 0, 2*len(seats))
	for _, x := range seats {
		b = binary.BigEndian.AppendUint16(b, uint16(x))
	}
	return string(b)
}
