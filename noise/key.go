package noise

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// A Role says what a stream is for. Different roles never share a stream.
type Role string

const (
	RoleInstance Role = "instance" // means redrawn per run
	RoleReward   Role = "reward"   // one stream an arm
	RoleNoise    Role = "noise"    // privacy noise
	RolePolicy   Role = "policy"   // a policy's own coins
	RoleDelay    Role = "delay"    // how late rewards are
	RoleContext  Role = "context"  // which contexts people come with
	RoleFloor    Role = "floor"    // rounds that play a uniform arm, whatever the policy wants
)

// A Key names a random stream. Keys that differ in any field name streams that have nothing to do
// with each other: a stream's seed is the SHA-256 of all fields, so no two of them are close or
// overlap by design of the key.
type Key struct {
	Seed       uint64
	Experiment string // the world: content of instance; never its name
	Cell       string // the policy and its budget; empty for the streams that all policies share
	Run        int
	Role       Role
}

// keyVersion separates these hashes from all others, and from those of a later way to write a key.
// Changing it changes every result of every experiment.
const keyVersion = "sotto noise key 1"

// use separates the generators that can be made from one key.
type use byte

const (
	useFast use = iota + 1
	useChaCha8
)

// seed hashes the key once. Numbers have a fixed length and strings are preceded by their length,
// so different keys are different bytes.
func (k Key) seed(u use) [sha256.Size]byte {
	var room [256]byte // so that ordinary keys do not allocate
	b := append(room[:0], keyVersion...)
	b = append(b, byte(u))
	b = binary.LittleEndian.AppendUint64(b, k.Seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(k.Run))
	for _, s := range [...]string{k.Experiment, k.Cell, string(k.Role)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	return sha256.Sum256(b)
}

// Fast returns n independent fast streams of this key. Stream i is the same for every n > i.
func (k Key) Fast(n int) []Fast {
	out := make([]Fast, max(n, 0))
	k.FillFast(out)
	return out
}

// FillFast fills dst with the first len(dst) streams of this key: those of [Key.Fast], without its
// slice. What is left is one allocation of 320 bytes, which math/rand/v2's ChaCha8 cannot do without.
func (k Key) FillFast(dst []Fast) {
	// ChaCha8 rather than a counter added to the hash: the states of two PCG streams then
	// share no pattern.
	var expand rand.ChaCha8
	expand.Seed(k.seed(useFast))
	for i := range dst {
		hi, lo := expand.Uint64(), expand.Uint64()
		dst[i] = NewFast(hi, lo)
	}
}

// ChaCha8 returns this key's ChaCha8 stream. It repeats, so it is for simulating the exact
// samplers; for real rewards use [Secure].
func (k Key) ChaCha8() *rand.ChaCha8 { return rand.NewChaCha8(k.seed(useChaCha8)) }

// Secure returns a ChaCha8 generator keyed with 256 bits from the operating system: the one to
// protect real rewards with.
func Secure() (*rand.ChaCha8, error) {
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("noise: no key from the operating system: %w", err)
	}
	return rand.NewChaCha8(seed), nil
}
