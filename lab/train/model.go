package train

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
)

// A Model is a classifier trained on cross-entropy, with parameters in one vector θ. A Model itself
// holds none: it is a shape.
type Model interface {
	Inputs() int
	Classes() int
	// Params is the length of θ.
	Params() int
	// Last is where the last linear layer's parameters are in θ, from lo up to hi. The restriction
	// of an attack to them makes its covariance small [Azize 2024, §7.2].
	Last() (lo, hi int)
	// Init writes a starting point.
	Init(theta []float64, src *noise.Fast)
	// NewPass returns scratch space for passes of one worker.
	NewPass() Pass
}

// A Pass computes losses and gradients of single examples. It is not safe for use by several workers.
type Pass interface {
	// Logits are valid until the next call.
	Logits(theta, x []float64) []float64
	// Gradient writes ∇_θ ℓ(f_θ(x), label) to grad and, unless it is nil, ∇_x to input. It
	// returns the loss.
	Gradient(theta, x []float64, label int, grad, input []float64) float64
}

// Logistic is multinomial logistic regression: a single linear layer with biases. Row c of θ is the
// weights of class c; the biases come last.
type Logistic struct{ Features, Labels int }

// Inputs implements Model.
func (l Logistic) Inputs() int { return l.Features }

// Classes implements Model.
func (l Logistic) Classes() int { return l.Labels }

// Params implements Model.
func (l Logistic) Params() int { return (l.Features + 1) * l.Labels }

// Last implements Model: it is all of θ.
func (l Logistic) Last() (int, int) { return 0, l.Params() }

// Init implements Model: zero, since the loss is convex.
func (l Logistic) Init(theta []float64, _ *noise.Fast) { clear(theta) }

// NewPass implements Model.
func (l Logistic) NewPass() Pass { return &logisticPass{l, make([]float64, l.Labels)} }

type logisticPass struct {
	l     Logistic
	logit []float64
}

func (p *logisticPass) Logits(theta, x []float64) []float64 {
	linear(theta, x, p.logit)
	return p.logit
}

func (p *logisticPass) Gradient(theta, x []float64, label int, grad, input []float64) float64 {
	linear(theta, x, p.logit)
	loss := softmaxLoss(p.logit, label)
	linearBack(theta, x, p.logit, grad, input)
	return loss
}

// linear is Wx + b, with W row by row and then b in theta.
func linear(theta, x, out []float64) {
	n := len(x)
	for c := range out {
		w := theta[c*n : (c+1)*n]
		s := theta[len(out)*n+c]
		for j, v := range x {
			s += float64(w[j] * v)
		}
		out[c] = s
	}
}

// linearBack writes the gradient of θ, and of x unless it is nil, from that of the outputs.
func linearBack(theta, x, delta, grad, input []float64) {
	n := len(x)
	if input != nil {
		clear(input)
	}
	for c, d := range delta {
		g := grad[c*n : (c+1)*n]
		for j, v := range x {
			g[j] = d * v
		}
		grad[len(delta)*n+c] = d
		if input != nil {
			w := theta[c*n : (c+1)*n]
			for j := range input {
				input[j] += float64(d * w[j])
			}
		}
	}
}

// softmaxLoss turns logits into the loss's gradient with respect to them, and returns the loss.
func softmaxLoss(logit []float64, label int) float64 {
	top := logit[0]
	for _, v := range logit {
		top = max(top, v)
	}
	var sum float64
	at := logit[label] - top
	for c, v := range logit {
		logit[c] = math.Exp(v - top)
		sum += logit[c]
	}
	for c := range logit {
		logit[c] /= sum
	}
	logit[label]--
	return math.Log(sum) - at
}

// Conv is a small convolutional net: for each entry of Filters a 3×3 convolution with zero padding,
// tanh, and the mean of 2×2 blocks; then a linear layer. Activations are smooth, so that CANIFE's
// derivative through a gradient exists everywhere. θ holds the layers in order, each with its
// weights [filter][channel][3][3] and then its biases.
type Conv struct {
	Height, Width, Channels int
	Filters                 []int
	Labels                  int
}

// Validate reports a net whose images become empty.
func (c Conv) Validate() error {
	if c.Channels < 1 || c.Labels < 2 {
		return fmt.Errorf("train: a net of %d channels and %d classes: at least 1 and 2", c.Channels, c.Labels)
	}
	h, w := c.Height, c.Width
	for i, f := range c.Filters {
		h, w = h/2, w/2
		if f < 1 {
			return fmt.Errorf("train: layer %d has %d filters: at least 1", i, f)
		}
	}
	if h < 1 || w < 1 {
		return fmt.Errorf("train: images of %d×%d are too small for %d layers: each halves them",
			c.Height, c.Width, len(c.Filters))
	}
	return nil
}

// Inputs implements Model.
func (c Conv) Inputs() int { return c.Height * c.Width * c.Channels }

// Classes implements Model.
func (c Conv) Classes() int { return c.Labels }

// layers are the convolutions, and the number of features that they leave.
func (c Conv) layers() (layers []convLayer, features, params int) {
	h, w, in := c.Height, c.Width, c.Channels
	for _, f := range c.Filters {
		layers = append(layers, convLayer{h, w, in, f, params})
		params += f*in*9 + f
		h, w, in = h/2, w/2, f
	}
	return layers, h * w * in, params
}

// Params implements Model.
func (c Conv) Params() int {
	_, f, p := c.layers()
	return p + (f+1)*c.Labels
}

// Last implements Model.
func (c Conv) Last() (int, int) {
	_, _, p := c.layers()
	return p, c.Params()
}

// Init implements Model: Glorot's normal weights, no biases.
func (c Conv) Init(theta []float64, src *noise.Fast) {
	clear(theta)
	layers, features, params := c.layers()
	for _, l := range layers {
		sd := math.Sqrt(2 / float64(9*(l.in+l.out)))
		for i := range l.in * l.out * 9 {
			theta[l.at+i] = sd * src.Normal()
		}
	}
	sd := math.Sqrt(2 / float64(features+c.Labels))
	for i := range features * c.Labels {
		theta[params+i] = sd * src.Normal()
	}
}

// NewPass implements Model.
func (c Conv) NewPass() Pass {
	layers, features, params := c.layers()
	p := &convPass{layers: layers, last: params, inputs: make([][]float64, len(layers)+1),
		acts: make([][]float64, len(layers)), deltas: make([][]float64, len(layers)+1),
		logit: make([]float64, c.Labels)}
	for i, l := range layers {
		p.acts[i] = make([]float64, l.h*l.w*l.out)
		p.deltas[i] = make([]float64, l.h*l.w*l.in)
		p.inputs[i+1] = make([]float64, (l.h/2)*(l.w/2)*l.out)
	}
	p.deltas[len(layers)] = make([]float64, features)
	return p
}

type convLayer struct{ h, w, in, out, at int }

type convPass struct {
	layers []convLayer
	last   int
	inputs [][]float64 // of each layer; the last one is the features
	acts   [][]float64 // after tanh
	deltas [][]float64 // the loss's gradient with respect to inputs
	logit  []float64
}

func (p *convPass) Logits(theta, x []float64) []float64 {
	p.inputs[0] = x
	for i, l := range p.layers {
		l.forward(theta[l.at:], p.inputs[i], p.acts[i], p.inputs[i+1])
	}
	linear(theta[p.last:], p.inputs[len(p.layers)], p.logit)
	return p.logit
}

func (p *convPass) Gradient(theta, x []float64, label int, grad, input []float64) float64 {
	p.Logits(theta, x)
	loss := softmaxLoss(p.logit, label)
	n := len(p.layers)
	linearBack(theta[p.last:], p.inputs[n], p.logit, grad[p.last:], p.deltas[n])
	for i := n - 1; i >= 0; i-- {
		l := p.layers[i]
		back := p.deltas[i]
		if i == 0 && input == nil {
			back = nil
		}
		l.backward(theta[l.at:], p.inputs[i], p.acts[i], p.deltas[i+1], grad[l.at:], back)
	}
	if input != nil {
		copy(input, p.deltas[0])
	}
	return loss
}

func (l convLayer) forward(theta, x, act, out []float64) {
	size := l.h * l.w
	bias := theta[l.out*l.in*9:]
	for o := range l.out {
		a := act[o*size : (o+1)*size]
		for i := range a {
			a[i] = bias[o]
		}
		for c := range l.in {
			k := theta[(o*l.in+c)*9:]
			in := x[c*size : (c+1)*size]
			l.taps(func(tap, to, from, n int) {
				w := k[tap]
				dst, src := a[to:to+n], in[from:from+n]
				for j, v := range src {
					dst[j] += float64(w * v)
				}
			})
		}
		for i, v := range a {
			a[i] = math.Tanh(v)
		}
		h2, w2 := l.h/2, l.w/2
		for i := range h2 {
			for j := range w2 {
				at := 2*i*l.w + 2*j
				out[(o*h2+i)*w2+j] = (a[at] + a[at+1] + a[at+l.w] + a[at+l.w+1]) / 4
			}
		}
	}
}

// taps calls f for each of the nine weights and each row: the outputs from place to on are the
// weight times the inputs from place from on.
func (l convLayer) taps(f func(tap, to, from, n int)) {
	for di := -1; di <= 1; di++ {
		for dj := -1; dj <= 1; dj++ {
			lo, n := max(0, -dj), l.w-max(dj, -dj)
			if n <= 0 {
				continue
			}
			for i := max(0, -di); i < min(l.h, l.h-di); i++ {
				f((di+1)*3+dj+1, i*l.w+lo, (i+di)*l.w+lo+dj, n)
			}
		}
	}
}

// backward overwrites act with the loss's gradient before tanh.
func (l convLayer) backward(theta, x, act, delta, grad, back []float64) {
	size := l.h * l.w
	h2, w2 := l.h/2, l.w/2
	clear(grad[:l.out*l.in*9])
	if back != nil {
		clear(back)
	}
	for o := range l.out {
		a := act[o*size : (o+1)*size]
		var bias float64
		for i := range l.h {
			for j := range l.w {
				v := a[i*l.w+j]
				var d float64
				if i/2 < h2 && j/2 < w2 { // an odd last row or column is in no block
					d = delta[(o*h2+i/2)*w2+j/2] / 4
				}
				d *= 1 - float64(v*v)
				a[i*l.w+j] = d
				bias += d
			}
		}
		grad[l.out*l.in*9+o] = bias
		for c := range l.in {
			k := (o*l.in + c) * 9
			in := x[c*size : (c+1)*size]
			l.taps(func(tap, to, from, n int) {
				var s float64
				dst, src := a[to:to+n], in[from:from+n]
				for j, v := range src {
					s += float64(v * dst[j])
				}
				grad[k+tap] += s
				if back != nil {
					w, b := theta[k+tap], back[c*size+from:c*size+from+n]
					for j, d := range dst {
						b[j] += float64(w * d)
					}
				}
			})
		}
	}
}
