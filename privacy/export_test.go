package privacy

// What tests outside of the package look at.
const (
	MaxActions = maxActions
	MaxBase    = maxBase
)

var (
	ApproxToZCDP         = approxToZCDP
	ClassicSigma         = classicSigma
	ClonesEpsilon        = clonesEpsilon
	DiscreteLaplaceRenyi = discreteLaplaceRenyi
	GaussianSumZCDP      = gaussianSumZCDP
	LaplaceRenyi         = laplaceShiftRenyi
	NewGramTree          = newGramTree
	Orders               = rdpOrders
	PureToApprox         = pureToApprox
	PureToRenyi          = pureToRenyi
	PureToZCDP           = pureToZCDP
	Repeated             = repeated
	ReturningSigma       = returningSigma
	SkellamRenyi         = skellamRenyi
	SplitMixShares       = splitMixShares
	ZCDPToApprox         = zcdpToApprox
)

func (m Aggregated) LossWith(honest int) Loss { return m.lossWith(honest) }
func (m Elliptic) Actions() int               { return m.size() }
func (m Elliptic) Dim() int                   { return m.dimension() }
func (m GramWishart) Levels() int             { return m.levels() }
func (m Hybrid) Variance(t int) float64       { return m.variance(t) }
func (m SplitMix) Bits() int                  { return m.bits() }
func (m SquareRoot) MaxVariance() float64     { return m.maxVariance() }
func (m Tree) Variance(t int) float64         { return m.variance(t) }
