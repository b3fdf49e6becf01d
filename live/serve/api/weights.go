package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

// Weights out: the plans of experiments with leases in the words of other systems, which assign units by them and
// report their exposures.

// planned calls each for the plans of the experiments with leases that a key is good for, with the arm that is given
// to whom the plan gives none.
func (f *front) planned(r *http.Request, each func(x *decl.Experiment, p lease.Plan, without lease.Share)) error {
	k, _ := serve.By(r.Context())
	for _, x := range f.Engine.List(r.Context()) {
		d := x.Experiment
		if !d.Leases.On() || !k.For(d.Name) || x.State == serve.Draft || x.State == serve.Archived {
			continue
		}
		p, _, err := f.Engine.Plan(r.Context(), d.Name)
		if err != nil {
			return err
		}
		each(&d, p, p.Without())
	}
	return nil
}

// growthBook is what GrowthBook's clients read.
func (f *front) growthBook(w http.ResponseWriter, r *http.Request) (any, error) {
	out := compat.GrowthBookPayload{Status: http.StatusOK, Features: map[string]compat.GrowthBookFeature{}}
	err := f.planned(r, func(x *decl.Experiment, p lease.Plan, without lease.Share) {
		// A window opens while a plan is used or its exposures count; a lease has sixteen epochs at most.
		epochs := 16 * (x.Leases.For + x.Leases.Delay + x.Window).Hours() / x.Leases.For.Hours()
		out.Features[p.Experiment] = compat.GrowthBookOf(p, epochs, without)
	})
	if err != nil {
		return nil, err
	}
	return nil, tagged(w, r, out)
}

// growthBookTrack takes what GrowthBook's tracking plugin sends, which comes when a queue is full, a clock says so or
// the page ends: where exposures are strict, that is refused.
func (f *front) growthBookTrack(w http.ResponseWriter, r *http.Request) (any, error) {
	data, err := f.foreign(w, r, compat.MaxGrowthBookTrack)
	if err != nil {
		return nil, err
	}
	all, err := compat.GrowthBookExposures(data)
	if err != nil {
		return nil, err
	}
	k, _ := serve.By(r.Context())
	for _, v := range all {
		x, err := f.Engine.Get(r.Context(), v.Experiment)
		if err == nil && x.Experiment.Leases.Exposures == decl.ExposuresStrict {
			return nil, refused(http.StatusForbidden, "experimentId", "exposures of "+v.Experiment+" must be sent when they "+
				"are made, by the tracking callback to /v1/exposures: the experiment declares exposures: strict")
		}
	}
	all = slices.DeleteFunc(all, func(v serve.Exposure) bool { return v.Check() != nil }) // one counts nowhere, the others do
	for some := range slices.Chunk(all, serve.MaxExposures) {
		if err := f.Engine.Expose(r.Context(), some, func(i int) bool { return k.For(some[i].Experiment) }); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 { // waits as long
		if err := f.Engine.Expose(r.Context(), nil, nil); err != nil {
			return nil, err
		}
	}
	write(w, http.StatusAccepted, "application/json", struct{}{})
	return nil, nil
}

// flagd is what flagd reads, or its providers from a file.
func (f *front) flagd(w http.ResponseWriter, r *http.Request) (any, error) {
	flags := map[string]compat.FlagdFlag{}
	err := f.planned(r, func(_ *decl.Experiment, p lease.Plan, without lease.Share) {
		flags[p.Experiment] = compat.FlagdOf(p, without.Arm)
	})
	if err != nil {
		return nil, err
	}
	return nil, tagged(w, r, compat.FlagdDefinitionsOf(flags))
}

// tagged writes JSON with its ETag, or 304 to whoever has it.
func tagged(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tag := tagOf(b)
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	if has(r, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	write(w, http.StatusOK, "application/json", json.RawMessage(b))
	return nil
}

// tagOf is the entity tag of what is answered.
func tagOf(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// has says whether who asks has what is tagged so.
func has(r *http.Request, tag string) bool {
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimSpace(known); known == tag || known == "W/"+tag || known == "*" {
			return true
		}
	}
	return false
}
