package api

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"

	"github.com/sotto-dp/sotto/live/serve"
)

// A cohortTaskJSON is what a decision's client must know of its experiment's sessions.
type cohortTaskJSON struct {
	Users   int     `json:"users"`
	Corrupt float64 `json:"corrupt"`
	Vanish  float64 `json:"vanish"`
	EveryMS int64   `json:"every_ms"`
	WaitMS  int64   `json:"wait_ms"`
	NextMS  int64   `json:"next_ms"`
	RoundMS int64   `json:"round_ms"`
	Server  string  `json:"server"`
}

func cohortTaskOf(t *serve.CohortTask) *cohortTaskJSON {
	if t == nil {
		return nil
	}
	return &cohortTaskJSON{Users: int(t.Terms.Users), Corrupt: t.Terms.Corrupt, Vanish: t.Terms.Vanish,
		EveryMS: t.Terms.Every.Milliseconds(), WaitMS: t.Terms.Wait.Milliseconds(),
		NextMS:  t.Next.Milliseconds(),
		RoundMS: t.Round.Milliseconds(), Server: base64.RawURLEncoding.EncodeToString(t.Server)}
}

type sessionRequest struct {
	Ticket string `json:"ticket"`
}

func (q *sessionRequest) check() error {
	if q.Ticket == "" {
		return refused(http.StatusBadRequest, "ticket", "ticket is missing")
	}
	return nil
}

type sessionJSON struct {
	Status  serve.CohortStatus `json:"status"`
	AfterMS *int64             `json:"after_ms,omitempty"`
	*openSessionJSON
}

type openSessionJSON struct {
	Address string   `json:"address"`
	Server  string   `json:"name"`
	ID      string   `json:"id"`
	Arm     int      `json:"arm"`
	Start   int      `json:"start"`
	End     int      `json:"end"`
	Keys    []string `json:"keys"`
}

// session says what the client of a decision is to do about its session.
func (f *front) session(w http.ResponseWriter, r *http.Request) (any, error) {
	var in sessionRequest
	if err := read(w, r, maxDecision, &in); err != nil {
		return nil, err
	}
	ticket, err := base64.RawURLEncoding.Strict().DecodeString(in.Ticket)
	if err != nil {
		return nil, serve.ErrToken
	}
	s, err := f.Engine.Cohort(r.Context(), r.PathValue("name"), ticket)
	if err != nil {
		return nil, err
	}
	out := sessionJSON{Status: s.Status}
	if s.Status != serve.CohortOver {
		after := s.After.Milliseconds()
		out.AfterMS = &after
	}
	if s.Status == serve.CohortOpen {
		out.openSessionJSON = &openSessionJSON{Address: s.Address, Server: s.Name,
			ID:  hex.EncodeToString(s.ID[:]),
			Arm: s.Arm, Start: s.Start, End: s.End, Keys: make([]string, len(s.Keys))}
		for i, k := range s.Keys {
			out.Keys[i] = base64.RawURLEncoding.EncodeToString(k)
		}
	}
	return out, nil
}
