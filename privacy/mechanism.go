package privacy

// A Mechanism says how a slot of rewards in [0,1] is released: the noise itself, not a promise about it. It is data: a policy states
// it, a file shows it, package release builds it and the ledger prices it. Scale 0 is no noise and costs ∞, so that "no privacy" needs
// no branch.
type Mechanism interface {
	// Kind is the mechanism's name in JSON.
	Kind() string
	// Loss is what one reward loses, under replace-one, when its slot goes through the mechanism once.
	Loss() Loss
	// Continual mechanisms release a growing slot again and again for one charge: their noise belongs to the slot.
	Continual() bool
}

// Exact releases running sums without noise. It costs ∞.
type Exact struct{}

// Laplace releases a slot's sum plus Lap(Scale): 1/Scale-DP (000 Theorem 2.13).
type Laplace struct{ Scale float64 }

// Gaussian releases a slot's sum plus N(0, Sigma²): 1/(2·Sigma²)-zCDP (000 Theorem 2.14).
type Gaussian struct{ Sigma float64 }

// Tree releases every running sum of a slot of at most Horizon rewards through the binary tree mechanism (002 Algorithm 5), with
// Lap(Scale) on each node.
type Tree struct {
	Scale   float64
	Horizon int
}

// Hybrid releases every running sum of a slot of unknown length (Chan, Shi and Song 2010, §4): a Lap(Scale) for each finished segment
// [2^k, 2^(k+1)) and inside the current one a tree whose nodes have Lap(Scale·(k+1)).
type Hybrid struct{ Scale float64 }
