package noise

import "math/bits"

// pcg is math/rand/v2's PCG, word for word the same (O'Neill 2014, with the DXSM output): here
// its state can stay in registers while a method draws many variates (Fast.Normals), which
// halves their cost.
type pcg struct{ hi, lo uint64 }

// step is the state after this one.
func (p pcg) step() pcg {
	const (
		mulHi = 2549297995355413924
		mulLo = 4865540595714422341
		incHi = 6364136223846793005
		incLo = 1442695040888963407
	)
	hi, lo := bits.Mul64(p.lo, mulLo)
	hi += p.hi*mulLo + p.lo*mulHi
	lo, c := bits.Add64(lo, incLo, 0)
	hi, _ = bits.Add64(hi, incHi, c)
	return pcg{hi, lo}
}

// word is the output of a state: a double xorshift and multiply.
func (p pcg) word() uint64 {
	const cheapMul = 0xda942042e4dd58b5
	w := p.hi ^ p.hi>>32
	w *= cheapMul
	w ^= w >> 48
	return w * (p.lo | 1)
}

func (p *pcg) Uint64() uint64 {
	*p = p.step()
	return p.word()
}
