// Package noise draws random numbers: fast ones to simulate with, exact ones to protect people
// with. Begin with NewFast to simulate, and with NewDiscreteLaplace or NewDiscreteGaussian to
// protect.
//
// # Two families, never mixed
//
// [Fast] is for simulation only. It is a PCG stream and floating-point samplers. PCG is not a
// cryptographic generator: its state can be computed from its output. A floating-point Laplace or
// normal variate has gaps and uneven masses in its low bits, and they show which sum was released
// (Mironov 2012). Neither matters where rewards are themselves simulated. Both end all privacy
// where a reward belongs to a person.
//
// [Geometric], [DiscreteLaplace], [DiscreteGaussian], [NegativeBinomial], [PolyaDifference],
// [Poisson] and [Skellam] are for real rewards. They draw integers whose law is exactly the one
// written in their file: parameters are rational, every decision compares random bits with a
// rational number or with the binary digits of e^{-k}, and no floating-point number lies between
// random bits and noise. They follow Canonne, Kamath and Steinke, "The Discrete Gaussian for
// Differential Privacy" (2020), from here on CKS. Add them to fixed-point integer sums.
//
// # Noise of many users
//
// Where no server is believed, each of n users adds a part of the noise [Chowdhury and Zhou 2023,
// section 4]. n draws of [PolyaDifference] add up to exactly one draw of [DiscreteLaplace], and n
// draws of [Skellam] to one of n times the variance: a simulation may draw the total at once, with
// [Fast.DiscreteLaplace] or [Fast.Skellam]. Discrete Gaussians do not add up to a discrete
// Gaussian: draw them one by one, with [DiscreteGaussian] or [Fast.DiscreteGaussian].
//
// # Where bits come from
//
// [Key] names a stream by what it is for. Equal keys give equal streams on every machine, so an
// experiment can be repeated, cut into shards and resumed. [Key.Fast] and [Key.FillFast] make PCG
// streams; [Key.ChaCha8] makes a ChaCha8 stream, to simulate an exact mechanism. Whoever knows the
// key knows the noise. For real rewards use [Secure], which is keyed by the operating system.
//
// # What is promised, and what is not
//
// Promised: given independent uniform bits, an exact sampler's value has exactly the stated law,
// except that it reports [ErrOverflow] instead of a value with a probability below e^{-7900}. No
// sampler allocates, except after a coincidence of 63 bits (once in 2^55 draws or so), when more
// digits of e^{-k} are worked out with math/big.
//
// Not promised: that the time of a draw hides its value. The samplers reject and repeat, and bigger
// noise takes longer. Whoever can time a single draw closely learns something about the noise:
// release results on a schedule that does not depend on the draw. Nor are the generator's state and
// the noise wiped from memory. Nor that a broken source is noticed: samplers that reject may wait
// for ever on a source that repeats itself.
//
// No sampler is safe for use from several goroutines on one stream: give each goroutine its own.
// Sampler values such as [DiscreteLaplace] hold no state and may be shared.
package noise
