package dap_test

import (
	"encoding/binary"
	"math/bits"
)

// This file shards as draft-irtf-cfrg-vdaf-14 says, from its text and slowly: an implementation
// that shares nothing with circl's, for the values between that testdata/reports.json has.

// order is the order of the field.
const order = 1<<64 - 1<<32 + 1

func add(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	_, r := bits.Div64(carry, s, order)
	return r
}

func sub(a, b uint64) uint64 { return add(a, order-b) }

func mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return bits.Rem64(hi, lo, order)
}

func pow(a, n uint64) uint64 {
	r := uint64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			r = mul(r, a)
		}
		a = mul(a, a)
	}
	return r
}

// evaluate is a polynomial, the constant first, at x.
func evaluate(p []uint64, x uint64) (y uint64) {
	for i := len(p) - 1; i >= 0; i-- {
		y = add(mul(y, x), p[i])
	}
	return y
}

// root is a root of unity of order n, a power of two.
func root(n uint64) uint64 { return pow(7, (order-1)/n) }

// interpolate is the polynomial with these values at the powers of a root of unity.
func interpolate(values []uint64) []uint64 {
	n := uint64(len(values))
	back := pow(root(n), order-2)
	p := make([]uint64, n)
	for i := range p {
		p[i] = mul(evaluate(values, pow(back, uint64(i))), pow(n, order-2))
	}
	return p
}

// The usages of randomness in Prio3.
const (
	usageMeasurementShare = 1
	usageProofShare       = 2
	usageProve            = 4
	usageQuery            = 5
)

// expand is XofTurboShake128's next_vec of Prio3Sum.
func expand(seed, ctx []byte, usage uint16, binder []byte, n int) []uint64 {
	dst := append([]byte{12, 0, 0, 0, 0, 2}, binary.BigEndian.AppendUint16(nil, usage)...)
	dst = append(dst, ctx...)
	m := binary.LittleEndian.AppendUint16(nil, uint16(len(dst)))
	m = append(append(m, dst...), byte(len(seed)))
	m = append(append(m, seed...), binder...)
	next := turboShake128(m)
	out := make([]uint64, 0, n)
	for len(out) < n {
		if x := next(); x < order {
			out = append(out, x)
		}
	}
	return out
}

// turboShake128 absorbs m, with 1 as the domain, and squeezes eight bytes at a time (RFC 9861).
func turboShake128(m []byte) (next func() uint64) {
	const rate = 168
	var a [25]uint64
	m = append(append([]byte(nil), m...), 1)
	for len(m)%rate != 0 {
		m = append(m, 0)
	}
	m[len(m)-1] ^= 0x80
	for ; len(m) > 0; m = m[rate:] {
		for i := range rate / 8 {
			a[i] ^= binary.LittleEndian.Uint64(m[8*i:])
		}
		keccak12(&a)
	}
	i := 0
	return func() uint64 {
		if i == rate/8 {
			keccak12(&a)
			i = 0
		}
		i++
		return a[i-1]
	}
}

// keccak12 is Keccak-p[1600] with its last 12 rounds (FIPS 202).
func keccak12(a *[25]uint64) {
	constants := [...]uint64{0x8000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003,
		0x8000000000008002, 0x8000000000000080, 0x800A, 0x800000008000000A, 0x8000000080008081,
		0x8000000000008080, 0x80000001, 0x8000000080008008}
	for _, constant := range constants {
		var c [5]uint64
		for x := range 5 {
			c[x] = a[x] ^ a[x+5] ^ a[x+10] ^ a[x+15] ^ a[x+20]
		}
		for i := range a {
			x := i % 5
			a[i] ^= c[(x+4)%5] ^ bits.RotateLeft64(c[(x+1)%5], 1)
		}
		var b [25]uint64
		b[0] = a[0]
		x, y, rotation := 1, 0, 0
		for t := range 24 {
			rotation += t + 1
			to := y + 5*((2*x+3*y)%5)
			b[to] = bits.RotateLeft64(a[x+5*y], rotation)
			x, y = y, (2*x+3*y)%5
		}
		for i := range a {
			x, row := i%5, i-i%5
			a[i] = b[i] ^ ^b[row+(x+1)%5]&b[row+(x+2)%5]
		}
		a[0] ^= constant
	}
}

// sharding is a measurement on its way to two input shares.
type sharding struct {
	Measurement      []uint64 // encoded: its bits, and those of itself and the offset
	ProveRand        uint64
	Proof            []uint64 // the wire's seed, then the gadget's polynomial, the constant first
	HelperMeasure    []uint64
	HelperProof      []uint64
	leader           []byte // LeaderShare: both, less the helper's
	seed, proverSeed []byte
}

// shard is Prio3Sum.shard.
func shard(grid, value uint64, ctx, seed, proverSeed []byte) sharding {
	s := sharding{seed: seed, proverSeed: proverSeed}
	n := bits.Len64(grid)
	offset := uint64(1)<<n - 1 - grid
	for _, x := range []uint64{value, value + offset} {
		for i := range n {
			s.Measurement = append(s.Measurement, x>>i&1)
		}
	}
	s.ProveRand = expand(proverSeed, ctx, usageProve, []byte{1}, 1)[0]
	wire := append([]uint64{s.ProveRand}, s.Measurement...)
	for bits.OnesCount(uint(len(wire))) != 1 {
		wire = append(wire, 0)
	}
	w := interpolate(wire)
	gadget := make([]uint64, 2*len(w)-1) // w² − w
	for i, a := range w {
		for j, b := range w {
			gadget[i+j] = add(gadget[i+j], mul(a, b))
		}
	}
	for i, a := range w {
		gadget[i] = sub(gadget[i], a)
	}
	s.Proof = append([]uint64{s.ProveRand}, gadget...)
	s.HelperMeasure = expand(seed, ctx, usageMeasurementShare, []byte{1}, len(s.Measurement))
	s.HelperProof = expand(seed, ctx, usageProofShare, []byte{1, 1}, len(s.Proof))
	for i, x := range s.Measurement {
		s.leader = binary.LittleEndian.AppendUint64(s.leader, sub(x, s.HelperMeasure[i]))
	}
	for i, x := range s.Proof {
		s.leader = binary.LittleEndian.AppendUint64(s.leader, sub(x, s.HelperProof[i]))
	}
	return s
}

// little are field elements as VDAF encodes them.
func little(v []uint64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}
