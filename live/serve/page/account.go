package page

import (
	"fmt"
	"math"
	"net/http"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
)

// An Account is the page of what all experiments can cost one person.
type Account struct {
	Frame
	serve.Account
	// None: there is no cap.
	None bool
	// Factor is by how much all that is published may change the odds about one person's outcome; empty
	// where the cap is exceeded, is not in ε, or is beyond what is read.
	Factor string
}

// mostFactor is the largest ε whose factor is shown.
const mostFactor = 20

// Account shows what experiments can cost one person.
func (p *Pages) Account(w http.ResponseWriter, r *http.Request) error {
	a, err := p.cfg.Engine.Account(r.Context())
	if err != nil {
		return err
	}
	out := Account{Frame: p.frame(r, "One person, all experiments"), Account: a, None: a.Cap == serve.PersonCap{}}
	if b, pure := a.Cap.Budget.(privacy.Pure); pure && b.Epsilon <= mostFactor && a.Over() == 0 {
		out.Factor, _ = words.Odds(b.Epsilon)
	}
	p.write(w, http.StatusOK, "account.html", out)
	return nil
}

// In is an amount in the currency of the cap, as pages write it.
func (a Account) In(x float64) string {
	if math.IsInf(x, 1) {
		return "not known"
	}
	return greek(fmt.Sprint(a.Cap.In(x)))
}
