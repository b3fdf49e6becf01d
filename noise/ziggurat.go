package noise

import "math"

// The ziggurat of Marsaglia and Tsang (2000) with 256 layers of equal area under e^{-x} and under
// e^{-x²/2}. Of one 64-bit word, 8 bits choose the layer, 1 bit is the sign and 53 bits are the
// abscissa, all different bits; so the abscissa has the full resolution of a double (the original
// uses one 32-bit word for all, which Doornik (2005) shows to be seen in tests). Points outside the
// layer's certain part are decided by comparing with the density itself, so rounding of the tables'
// edges costs time and not exactness.

//go:generate go run gen_ziggurat.go

// A layer of a ziggurat: abscissa j·w, certain to lie under the curve when j < k.
type layer struct {
	k int64
	w float64
}

const (
	layerBits = 0xff
	signBit   = 8  // of the word
	mantissa  = 11 // the word's bits from here up are the abscissa
)

// Exponential has density e^{-x} on x ≥ 0.
func (f *Fast) Exponential() float64 {
	f.pcg = f.pcg.step()
	w := f.pcg.word()
	l := &expLayers[w&layerBits]
	if j := int64(w >> mantissa); j < l.k {
		return float64(j) * l.w
	}
	return f.exponentialEdge(w)
}

// Laplace has density e^{-|x|/b}/(2b). Its variance is 2b². Scale 0 is the constant 0.
func (f *Fast) Laplace(b float64) float64 {
	f.pcg = f.pcg.step()
	w := f.pcg.word()
	l := &expLayers[w&layerBits]
	var x float64
	if j := int64(w >> mantissa); j < l.k {
		x = float64(j) * l.w
	} else {
		x = f.exponentialEdge(w)
	}
	return signed(x*b, w)
}

// Normal is the standard normal law.
func (f *Fast) Normal() float64 {
	f.pcg = f.pcg.step()
	w := f.pcg.word()
	l := &normalLayers[w&layerBits]
	if j := int64(w >> mantissa); j < l.k {
		return signed(float64(j)*l.w, w)
	}
	return signed(f.normalEdge(w), w)
}

// Normals fills dst with what as many calls of Normal return, in half of their time.
func (f *Fast) Normals(dst []float64) {
	p := f.pcg // in registers: through f, each word would wait for the one before to be stored
	for i := range dst {
		p = p.step()
		w := p.word()
		l := &normalLayers[w&layerBits]
		if j := int64(w >> mantissa); j < l.k {
			dst[i] = signed(float64(j)*l.w, w)
			continue
		}
		f.pcg = p
		dst[i] = signed(f.normalEdge(w), w)
		p = f.pcg
	}
	f.pcg = p
}

// signed gives x the sign in the word, without a branch that half of all draws would mispredict.
func signed(x float64, w uint64) float64 {
	return math.Float64frombits(math.Float64bits(x) ^ (w<<(63-signBit))&(1<<63))
}

// exponentialEdge goes on from a word that was not certain: a wedge between layer and
// curve, or the tail.
func (f *Fast) exponentialEdge(w uint64) float64 {
	base := 0.0
	for {
		i, j := w&layerBits, int64(w>>mantissa)
		x := float64(j) * expLayers[i].w
		switch {
		case j < expLayers[i].k:
			return base + x
		case i == 0:
			base += expTail // beyond the base layer the law is the same law again
		case expHeights[i]+float64(f.Float64()*(expHeights[i+1]-expHeights[i])) < math.Exp(-x):
			return base + x
		}
		w = f.pcg.Uint64()
	}
}

// normalEdge is |x| of a normal variate that goes on from a word that was not certain.
func (f *Fast) normalEdge(w uint64) float64 {
	for {
		i, j := w&layerBits, int64(w>>mantissa)
		x := float64(j) * normalLayers[i].w
		switch {
		case j < normalLayers[i].k:
			return x
		case i == 0:
			return f.normalTail()
		case normalHeights[i]+float64(f.Float64()*(normalHeights[i+
			1]-normalHeights[i])) < math.Exp(-0.5*float64(x*x)):
			return x
		}
		w = f.pcg.Uint64()
	}
}

// normalTail draws beyond the base layer (Marsaglia 1964): r + E/r has density ∝ e^{-rx}, and
// e^{-(x-r)²/2} of it is kept.
func (f *Fast) normalTail() float64 {
	for {
		x := f.Exponential() / normalTailStart
		if y := f.Exponential(); y+y > float64(x*x) {
			return normalTailStart + x
		}
	}
}
