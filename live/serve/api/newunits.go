package api

import (
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/internal/network"
)

// Everybody can read the key of a page, and a browser without a cookie is a new unit. So whoever
// throws cookies away is as many units as they send requests, and decides which arm wins. The cap
// is on new units by address and second. It goes by their number alone: not by outcomes, nor by
// what was decided. Units that have their cookie, and those that were signed, are not counted.

// DefaultNewUnits is how many new units a second there may be of one address, as a rule.
const DefaultNewUnits = 1

const (
	// atOnce is how long an address saves up what it has not used.
	atOnce = time.Minute
	// maxNetworks is how many networks are in each of the two halves of the table.
	maxNetworks = 1 << 16
)

// newUnits has a bucket of tokens for each network that had new units of late. What it knows of a
// network is a number under a hash that no other process can compute, in memory alone, and is
// forgotten when the bucket has had time to be full again: a network that is not in the table has a
// full one. rate.Limiter of golang.org/x/time is one bucket: it does not say when it is full, and
// the table would be ours all the same.
type newUnits struct {
	rate, burst float64       // tokens a second, and at most
	fill        time.Duration // from empty to full
	clock       func() time.Time
	start       time.Time
	seed        maphash.Seed

	mu sync.Mutex
	// now has those that were looked at since the last turn, before those of the time until then,
	// which are forgotten at the next
	now, before map[uint64]bucket
	turn        *time.Timer // runs while there are any
}

type bucket struct {
	left float64
	at   time.Duration // when it was that, from the start
}

// newCap caps at a rate, of one a day at least. Nil is no cap, for +Inf.
func newCap(rate float64, clock func() time.Time) *newUnits {
	if rate == 0 {
		rate = DefaultNewUnits
	}
	if math.IsInf(rate, 1) {
		return nil
	}
	if clock == nil {
		clock = time.Now
	}
	rate = max(rate, 1/(24*time.Hour).Seconds())
	burst := max(1, rate*atOnce.Seconds())
	return &newUnits{rate: rate, burst: burst, fill: time.Duration(burst / rate * float64(time.Second)),
		clock: clock, start: clock(), seed: maphash.MakeSeed(), now: map[uint64]bucket{}}
}

// take says whether a network may have one more unit, and counts it.
func (u *newUnits) take(from netip.Prefix) bool {
	return u == nil || u.change(from, -1)
}

// giveBack undoes a take of which no unit came.
func (u *newUnits) giveBack(from netip.Prefix) {
	if u != nil {
		u.change(from, 1)
	}
}

func (u *newUnits) change(from netip.Prefix, by float64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	key, at := maphash.Comparable(u.seed, from), u.clock().Sub(u.start)
	b, known := u.now[key]
	if !known {
		b, known = u.before[key]
		delete(u.before, key)
	}
	if !known {
		b = bucket{u.burst, at}
	}
	// a clock that is set back adds nothing
	left := min(u.burst, b.left+u.rate*max(0, (at-b.at).Seconds()))
	ok := left+by >= 0
	if ok {
		left = min(u.burst, left+by)
	}
	if left == u.burst {
		delete(u.now, key)
		return ok
	}
	if len(u.now) >= maxNetworks {
		u.forget()
	}
	u.now[key] = bucket{left, at}
	if u.turn == nil {
		u.turn = time.AfterFunc(u.fill, func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.forget()
		})
	}
	return ok
}

// forget forgets those that were not looked at since the last time. The lock is held.
func (u *newUnits) forget() {
	u.before, u.now = u.now, map[uint64]bucket{}
	if len(u.before) > 0 {
		u.turn.Reset(u.fill)
		return
	}
	u.before, u.turn = nil, nil
}

// retryAfter is when a network without any has one token, in whole seconds.
func (u *newUnits) retryAfter() int { return int(math.Ceil(1 / u.rate)) }

// ownHeaders say who asks, or how: they cannot say where from.
var ownHeaders = regexp.MustCompile(`^(?i)(Authorization|Cookie|Host|Origin|Forwarded|X-Forwarded-Proto|` +
	`X-Api-Key|Ocp-Apim-Subscription-Key|` + forwarded + `|` + passedFrom + `)$`)

// ParseClientHeader reads the name of a header that has an address.
func ParseClientHeader(text string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`).MatchString(text) || ownHeaders.MatchString(text) {
		return "", fmt.Errorf("is %q, must be the name of a header that has an address and nothing else, "+
			"such as X-Real-IP, or a list of them, such as X-Forwarded-For", text)
	}
	return http.CanonicalHeaderKey(text), nil
}

// passedFrom has the address of a request that another process has passed on.
const passedFrom = "Sotto-From"

// from is the network that a request comes from: what the process says that passed it on, else of a
// declared header the last address, which the nearest proxy has added, and else that of the connection.
func (f *front) from(r *http.Request) netip.Prefix {
	header := f.ClientHeader
	if r.Header.Get(forwarded) != "" { // by a process of this database, as was checked
		header = passedFrom
	}
	if all := r.Header.Values(header); header != "" && len(all) > 0 {
		last := all[len(all)-1]
		if p, ok := network.Of(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); ok {
			return p
		}
	}
	p, _ := network.Of(r.RemoteAddr)
	return p
}

// tooMany refuses a new unit.
func (f *front) tooMany(r *http.Request) error {
	if f.Metrics != nil {
		f.Metrics.newUnits.WithLabelValues("refused").Inc()
	}
	if f.ClientHeader == "" && (r.Header.Get("X-Forwarded-For") != "" ||
		r.Header.Get("X-Forwarded-Proto") != "" || loopback(r.RemoteAddr)) {
		f.shared.Do(func() {
			f.Log.Warn("new units are refused that seem to come through a proxy: it is one address for all " +
				"of them until sotto serve --client-address-header names the header that has theirs")
		})
	}
	return refused(http.StatusTooManyRequests, "", "too many new units come from this address: show the usual "+
		"arm, and ask again later")
}

// tellFrom tells the process that a request is passed on to where it comes from.
func (f *front) tellFrom(to http.Header, of *http.Request) {
	to.Set(passedFrom, f.from(of).Addr().String())
}
