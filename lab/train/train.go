// Package train audits gradient descent: it trains small models with every iterate in sight,
// attacks the iterates, and bounds ε from below [Azize 2024, Chapter 7].
//
// A run of batch, mini-batch, stochastic or differentially private gradient descent moves the
// parameters along a mean of gradients, θ_{t+1} = θ_t − η·ḡ_t. Who sees the iterates sees the
// means, ḡ_t = (θ_t − θ_{t+1})/η, so the attacks of package audit on a mean are attacks on the run.
// The canary, an example or a gradient, is in the training set or not; its gradient at θ_t is the
// target at step t.
//
// # The claim
//
// DP-SGD (Training) samples each example with probability q, clips its gradient to norm C, and adds
// N(0, σ²C²) to the sum before it divides by the expected batch qn. SampledGaussian is its privacy:
// for examples added or removed, where sensitivity is C, and for an example replaced, where it is
// 2C and the bound another one. Neither is the truth of the floating point that this package trains
// with: it is a laboratory for audits, with fast simulated noise, not a trainer for private data.
//
// # What it does not show
//
// A low audited ε may mean that the canary was weak, or the attack, or that games were few (package
// audit). The audits here give the adversary every iterate; who sees the last one alone learns less.
package train
