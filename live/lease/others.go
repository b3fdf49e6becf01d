package lease

import (
	"encoding/hex"
	"math/bits"
	"strconv"
	"unicode/utf16"
)

// Other clients have hashes of their own. Under the same plan they give the same shares, to other units; an
// exposure says by which hash its client decided, and is checked by it.
//
// Both hash the salt's text followed by the unit's name: GrowthBook's as the seed of an experiment, flagd's
// as the first argument of fractional.
const (
	SipHash    = "siphash" // ours: [Plan.Decide]; an exposure need not name it
	GrowthBook = "growthbook"
	Flagd      = "flagd"
)

// Hashes are the names of all hashes.
func Hashes() []string { return []string{SipHash, GrowthBook, Flagd} }

// DecideBy is Decide by a hash of that name, empty for ours. It is −1 if no arm can have been given by it.
func (p *Plan) DecideBy(hash, unit string) (arm int) {
	bucket := Buckets
	switch hash {
	case "", SipHash:
		bucket = p.Salt.Bucket(unit)
	case GrowthBook:
		bucket = growthBook(p.Salt.String() + unit)
	case Flagd:
		if ascii(unit) {
			bucket = flagd(p.Salt.String() + unit)
		}
	}
	return p.At(bucket)
}

// String is the salt's text.
func (s Salt) String() string { return hex.EncodeToString(s[:]) }

// growthBook is version 2 of its hash: FNV-1a of the text, and of that number's digits.
func growthBook(text string) int {
	return int(fnv(strconv.FormatUint(uint64(fnv(text)), 10)) % Buckets)
}

// fnv is FNV-1a of 32 bits as JavaScript's users compute it: over the units of UTF-16, each in one step.
func fnv(text string) uint32 {
	const prime = 16777619
	h := uint32(2166136261)
	for _, r := range text {
		if a, b := utf16.EncodeRune(r); r > 0xffff {
			h = (h ^ uint32(a)) * prime
			r = b
		}
		h = (h ^ uint32(r)) * prime
	}
	return h
}

// flagd is MurmurHash3 (x86, 32 bits, seed 0) of the text, whose product with the sum of weights has
// the bucket above its 32nd bit.
func flagd(text string) int { return int(uint64(murmur3(text)) * Buckets >> 32) }

// ascii says whether all of flagd's clients hash a name alike: flagd itself hashes the bytes of UTF-8, and
// its provider for JavaScript the units of UTF-16, so that names beyond ASCII have two arms.
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

func murmur3(text string) (h uint32) {
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	n := uint32(len(text))
	for ; len(text) >= 4; text = text[4:] {
		k := uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24
		h = bits.RotateLeft32(h^mix(k), 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := range len(text) {
		k |= uint32(text[i]) << (8 * i)
	}
	h ^= mix(k) ^ n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
