package noise

import (
	"crypto/sha256"
	"encoding/binary"
)

// A Role says what a stream is for. Different roles never share a stream.
type Role string

const (
	RoleInstance Role = "instance" // means redrawn per run
	RoleReward   Role = "reward"   // one stream an arm
	RoleNoise    Role = "noise"    // privacy noise
	RolePolicy   Role = "policy"   // a policy's own coins
)

// A Key names a random stream.
type Key struct {
	Seed       uint64
	Experiment string // the world: content of instance; never its name
	Cell       string // the policy and its budget; empty for the streams that all policies share
	Run        int
	Role       Role
}

// Fast returns n independent fast streams of this key.
func (k Key) Fast(n int) []Fast {
	h := sha256.New()
	var b [8]byte
	put := func(x uint64) { binary.LittleEndian.PutUint64(b[:], x); h.Write(b[:]) }
	put(k.Seed)
	put(uint64(k.Run))
	for _, s := range []string{k.Experiment, k.Cell, string(k.Role)} {
		put(uint64(len(s)))
		h.Write([]byte(s))
	}
	d := h.Sum(nil)
	out := make([]Fast, n)
	for i := range out {
		out[i] = NewFast(binary.LittleEndian.Uint64(d), binary.LittleEndian.Uint64(d[8:])+uint64(i))
	}
	return out
}
