package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/cloudflare/circl/dh/x25519"
)

// stream is AES-256 in counter mode as a pseudo-random function to the integers modulo m, m up to
// 2^64. Coordinate i has blocks of its own, with counters (i, 0), (i, 1), …: where a coordinate
// stands does not depend on how many draws another one rejected. A key serves one vector.
type stream struct {
	block   cipher.Block
	in, out [aes.BlockSize]byte
}

func newStream(key []byte) (*stream, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("secagg: %w", err)
	}
	return &stream{block: b}, nil
}

// at is coordinate i, uniform modulo m (0 stands for 2^64). A word is refused when it is below 2^64
// mod m, so that each residue keeps as many words as any other; the time tells how many words were
// refused, which is independent of the one kept.
func (s *stream) at(i, m uint64) uint64 {
	var refuse uint64
	if m != 0 {
		refuse = -m % m
	}
	for c := uint64(0); ; c++ {
		binary.BigEndian.PutUint64(s.in[:8], i)
		binary.BigEndian.PutUint64(s.in[8:], c)
		s.block.Encrypt(s.out[:], s.in[:])
		for _, w := range [2]uint64{binary.BigEndian.Uint64(s.out[:8]), binary.BigEndian.Uint64(s.out[8:])} {
			if w < refuse {
				continue
			}
			if m == 0 {
				return w
			}
			return w % m
		}
	}
}

// add adds the stream to v modulo m, or takes it away. No branch depends on a value.
func (s *stream) add(v []uint64, m uint64, negative bool) {
	for i := range v {
		w := s.at(uint64(i), m)
		if negative {
			v[i] = subMod(v[i], w, m)
		} else {
			v[i] = addMod(v[i], w, m)
		}
	}
}

// addMod is a+b mod m for a, b < m, without a branch on them.
func addMod(a, b, m uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	less, borrow := bits.Sub64(sum, m, 0)
	if m == 0 {
		return sum
	}
	// The sum is at least m if it overflowed or if taking m away did not borrow.
	keep := -(borrow &^ carry)
	return sum&keep | less&^keep
}

// subMod is a−b mod m for a, b < m, without a branch on them.
func subMod(a, b, m uint64) uint64 {
	diff, borrow := bits.Sub64(a, b, 0)
	return diff + m&-borrow
}

// mask is a stream that is added or, if negative, taken away.
type mask struct {
	key      []byte
	negative bool
}

// addMasks adds masks to v modulo m.
func addMasks(v []uint64, m uint64, masks []mask) error {
	for _, x := range masks {
		g, err := newStream(x.key)
		if err != nil {
			return err
		}
		g.add(v, m, x.negative)
	}
	return nil
}

// pairMask is the mask of own with other, with the sign that makes the two of a pair cancel.
func pairMask(own *keyPair, ownID uint32, other *x25519.Key, otherID uint32, digest [32]byte) (mask, error) {
	k, err := agree(own, ownID, other, otherID, digest, "pair mask", 32)
	return mask{k, ownID > otherID}, err
}
