package private

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/dap"
	"github.com/sotto-dp/sotto/secagg/transport"
)

// ErrOver: there will be no session for the decision, or no other. Its reward counts as missing, unless
// one that this client has sent to was opened.
var ErrOver = errors.New("there are no more sessions for the decision")

// Terms are what a program may have compiled in of an experiment, from its public declaration, so
// that it need not believe what a decision says of them.
type Terms struct {
	Noise           release.Noise // whole, of a sum
	Users           int
	Corrupt, Vanish float64
	Lo, Hi          float64
}

// Cohorts takes part in the sessions of one experiment with trust secagg, for any number of
// decisions. The zero value of what is not required is ready. Goroutines may share it.
//
// What is promised: a reward leaves this process at most once, with a share of the noise of the
// terms in it, masked so that the service learns the sum over a session, in which at least
// Terms.Users honest clients have such shares. The service must follow the protocol: it is who
// enrols, and could enrol clients of its own (secagg.SemiHonest).
type Cohorts struct {
	Client     *client.Client // required, with a key of the scope reward
	Experiment string         // required
	// Terms, if set, are compared with what decisions say: another is ErrTerms. Nil believes the
	// decision, and holds its session to it.
	Terms *Terms
	// Journal, if set, remembers durably what has left, so that a program that starts again sends
	// nothing twice. Without it, that is remembered as long as the Cohorts.
	Journal *aggregate.Journal
	// Sleep waits; nil is a timer.
	Sleep func(context.Context, time.Duration) error

	mu   sync.Mutex
	sent map[[2]uint64]bool // by arm and number

	drawn map[shares]*release.Stock
}

// shares are what a client adds in a cohort.
type shares struct {
	noise release.Noise
	users int
}

// stock draws shares from the registration on, so that when a message comes tells nothing of its noise.
func (c *Cohorts) stock(of shares) (*release.Stock, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.drawn[of]; s != nil {
		return s, nil
	}
	s, err := of.noise.Shares(of.users)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if c.drawn == nil {
		c.drawn = map[shares]*release.Stock{}
	}
	c.drawn[of] = s
	return s, nil
}

// taskJSON is the report of a decision.
type taskJSON struct {
	Trust   privacy.Trust     `json:"trust"`
	Ticket  string            `json:"ticket"`
	AfterMS int64             `json:"after_ms"`
	Range   [2]float64        `json:"range"`
	Default float64           `json:"default"`
	Law     privacy.NoiseName `json:"law"`
	Noise   string            `json:"noise"`
	Cohort  *struct {
		Users   int     `json:"users"`
		Corrupt float64 `json:"corrupt"`
		Vanish  float64 `json:"vanish"`
		WaitMS  int64   `json:"wait_ms"`
		NextMS  int64   `json:"next_ms"`
		RoundMS int64   `json:"round_ms"`
		Server  string  `json:"server"`
	} `json:"cohort"`
}

// A Member is one decision's part.
type Member struct {
	of     *Cohorts
	task   taskJSON
	terms  Terms
	arm    int
	number uint64
	key    ed25519.PrivateKey
	server ed25519.PublicKey
	since  time.Time // when it was told
	used   secagg.Used
	drawn  *release.Stock
}

// Register registers a decision for its session, by client.Decision.Report: at once, whatever will
// happen. A report that is nil, or of another trust model, is ErrTerms; a status that is not client.Accepted is an error that matches ErrOver.
func (c *Cohorts) Register(ctx context.Context, report *client.ReportTask) (*Member, error) {
	if report == nil {
		return nil, fmt.Errorf("%w: its rewards come in the open", ErrTerms)
	}
	m := &Member{of: c, since: time.Now()}
	if err := json.Unmarshal(report.Terms, &m.task); err != nil {
		return nil, fmt.Errorf("%w: the decision's report cannot be read", client.ErrAnswer)
	}
	if m.task.Trust != privacy.TrustSecAgg || m.task.Cohort == nil {
		return nil, fmt.Errorf("%w: trust is %q, must be %s", ErrTerms, m.task.Trust, privacy.TrustSecAgg)
	}
	if err := m.read(); err != nil {
		return nil, err
	}
	var public ed25519.PublicKey
	var err error
	if m.drawn, err = c.stock(shares{m.terms.Noise, m.terms.Users}); err != nil {
		return nil, err
	}
	if public, m.key, err = ed25519.GenerateKey(nil); err != nil {
		return nil, err
	}
	status, err := c.Client.Register(ctx, c.Experiment, m.task.Ticket, public)
	switch {
	case err != nil:
		return nil, err
	case status != client.Accepted:
		return nil, fmt.Errorf("%w: the decision is %s", ErrOver, status)
	}
	return m, nil
}

// read checks what the decision says.
func (m *Member) read() error {
	x := m.task.Cohort
	n := release.Noise{Name: m.task.Law}
	num, den, ok := strings.Cut(m.task.Noise, "/")
	var errs [2]error
	n.Num, errs[0] = strconv.ParseUint(num, 10, 64)
	n.Den, errs[1] = strconv.ParseUint(den, 10, 64)
	if !ok || errs[0] != nil || errs[1] != nil {
		return fmt.Errorf("%w: noise must be a fraction", client.ErrAnswer)
	}
	m.terms = Terms{n, x.Users, x.Corrupt, x.Vanish, m.task.Range[0], m.task.Range[1]}
	if want := m.of.Terms; want != nil && *want != m.terms {
		return fmt.Errorf("%w: the decision says %+v, and the program %+v", ErrTerms, m.terms, *want)
	}
	var err error
	if m.server, err = base64.RawURLEncoding.DecodeString(x.Server); err != nil ||
		len(m.server) != ed25519.PublicKeySize {
		return fmt.Errorf("%w: server must be a key", client.ErrAnswer)
	}
	raw, err := base64.RawURLEncoding.DecodeString(m.task.Ticket)
	if err != nil {
		return fmt.Errorf("%w: ticket must be base64url", client.ErrAnswer)
	}
	t, err := dap.ParseTicket(raw)
	if err != nil {
		return fmt.Errorf("%w: %w", client.ErrAnswer, err)
	}
	m.arm, m.number = int(t.Arm), t.Number
	_, err = release.NewClip(m.terms.Lo, m.terms.Hi)
	if err == nil {
		_, err = m.terms.Noise.Cohort(m.terms.Users, m.terms.Users)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	return nil
}

// Due is when outcome is asked for: nothing that happens later counts.
func (m *Member) Due() time.Time {
	return m.since.Add(time.Duration(m.task.AfterMS) * time.Millisecond)
}

// Join waits for the decision's session and takes part in it, again at the next one if it is not
// held, until the service has said that the sum is known: then it is nil. outcome is called once,
// when Due has passed: ok is false if nothing has happened, which counts as the declared default.
// Who calls Join must not let it depend on the outcome, nor on ctx.
//
// An error that matches transport.ErrPossiblyReleased says that the masked message has left, and
// the session failed: it is not sent again, and may count or not. One that matches
// aggregate.ErrSpent says that it has left before. After ErrOver nothing has left.
func (m *Member) Join(ctx context.Context, outcome func() (reward float64, ok bool)) error {
	if err := m.sleep(ctx, time.Until(m.Due())); err != nil {
		return err
	}
	reward, ok := outcome()
	if !ok {
		reward = m.task.Default
	}
	if math.IsNaN(reward) {
		reward = m.terms.Lo
	}
	y := (min(max(reward, m.terms.Lo), m.terms.Hi) - m.terms.Lo) / (m.terms.Hi - m.terms.Lo)
	wait := time.Until(m.since.Add(time.Duration(m.task.Cohort.NextMS) * time.Millisecond))
	for {
		if err := m.sleep(ctx, wait+m.spread()); err != nil {
			return err
		}
		s, err := m.of.Client.Session(ctx, m.of.Experiment, m.task.Ticket)
		switch {
		case errors.Is(err, client.ErrUnavailable) && ctx.Err() == nil:
			wait = 0
			continue
		case err != nil:
			return err
		case s.Status == client.SessionOver:
			return fmt.Errorf("%w for arm %d, decision %d", ErrOver, m.arm, m.number)
		case s.Status == client.SessionOpen:
			err := m.take(ctx, s, y)
			if err == nil || errors.Is(err, transport.ErrPossiblyReleased) ||
				errors.Is(err, aggregate.ErrSpent) ||
				errors.Is(err, ErrTerms) || ctx.Err() != nil {
				return err
			}
		}
		wait = time.Duration(s.AfterMS) * time.Millisecond
	}
}

// spread keeps clients from coming all at once: within half of what a session waits.
func (m *Member) spread() time.Duration {
	return time.Duration(rand.Int64N(max(1, m.task.Cohort.WaitMS/2))) * time.Millisecond
}

func (m *Member) sleep(ctx context.Context, d time.Duration) error {
	if m.of.Sleep != nil {
		return m.of.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// take takes part in a session with a reward in [0,1].
func (m *Member) take(ctx context.Context, s client.Session, y float64) error {
	own := m.key.Public().(ed25519.PublicKey)
	mine := func(k ed25519.PublicKey) bool { return own.Equal(k) }
	at := slices.IndexFunc(s.Keys, mine)
	if at < 0 || slices.ContainsFunc(s.Keys[at+1:], mine) || s.Arm != m.arm || m.number > math.MaxInt ||
		int(m.number) < s.Start || int(m.number) >= s.End {
		return fmt.Errorf("%w: a session of arm %d, decisions %d to %d, for decision %d of arm %d",
			ErrTerms, s.Arm,
			s.Start, s.End-1, m.number, m.arm)
	}
	of := aggregate.Cohort{Experiment: m.of.Experiment, Noise: m.terms.Noise, Users: m.terms.Users,
		Corrupt: m.terms.Corrupt, Vanish: m.terms.Vanish}
	session, mechanism, err := of.Session(s.ID, s.Arm, s.Start, len(s.Keys))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	message, err := noisy(mechanism, y, m.drawn)
	if err != nil {
		return err
	}
	keys := make(map[uint32]ed25519.PublicKey, len(s.Keys))
	for i, k := range s.Keys {
		keys[uint32(i+1)] = k
	}
	return transport.Join(ctx, s.Address, transport.ClientConfig{
		Protocol: secagg.ClientConfig{Session: session, ID: uint32(at + 1), Identity: m.key, Server: m.server,
			Pinned: secagg.PinnedKeys(keys), Used: &m.used,
			Timeout: time.Duration(m.task.Cohort.RoundMS) * time.Millisecond},
		Wait:       time.Duration(m.task.Cohort.WaitMS) * time.Millisecond,
		ServerName: s.Name,
		Spend: func() error {
			return m.of.spend(aggregate.Charge{Experiment: m.of.Experiment, Arm: uint64(m.arm), Batch: m.number,
				Session: s.ID, Mechanism: mechanism})
		},
	}, message)
}

// noisy is a reward in [0,1] with a share of the noise that was drawn ahead.
func noisy(m privacy.Aggregated, y float64, drawn *release.Stock) ([]uint64, error) {
	r, err := release.NewRandomizer(m)
	if err != nil {
		return nil, err
	}
	if err := r.From(drawn); err != nil {
		return nil, err
	}
	return r.Messages(nil, y)
}

// spend writes down that a decision's reward is about to leave. Once: a second session of it has
// other noise.
func (c *Cohorts) spend(charge aggregate.Charge) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := [2]uint64{charge.Arm, charge.Batch}
	if c.sent[at] {
		return fmt.Errorf("%w: arm %d, decision %d", aggregate.ErrSpent, charge.Arm, charge.Batch)
	}
	if c.Journal != nil {
		if err := c.Journal.Spend(charge); err != nil {
			return err
		}
	}
	if c.sent == nil {
		c.sent = map[[2]uint64]bool{}
	}
	c.sent[at] = true
	return nil
}
