package compat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve"
)

// GrowthBook's clients read what to do from /api/features/KEY, and their tracking plugins report to
// /track?client_key=KEY. A plan is an experiment there whose variations have keys of arm and epoch, so
// that an exposure says by which plan it was made, also where a sticky bucket has kept it. Ranges say
// exactly which buckets an arm has, where sums of weights would be off by rounding.
//
// The plugin sends exposures in one body with events. Of it exposures alone are read, since an event must neither count
// there nor move them. When the plugin's batch leaves is not ours to keep, and may follow from an event, so strict
// experiments refuse it.
const (
	GrowthBookFeatures = "/api/features/"
	GrowthBookTrack    = "/track"
	MaxGrowthBookTrack = 1 << 20 // bytes
	// GrowthBookVariations is how many variations a feature has at most for sticky buckets.
	GrowthBookVariations = 1000
)

// A GrowthBookPayload is what clients read.
type GrowthBookPayload struct {
	Status   int                          `json:"status"`
	Features map[string]GrowthBookFeature `json:"features"`
}

// A GrowthBookFeature is an experiment, whose name is the feature's.
type GrowthBookFeature struct {
	Default json.RawMessage  `json:"defaultValue"`
	Rules   []GrowthBookRule `json:"rules,omitempty"`
}

// A GrowthBookRule is a plan, as it is given to units.
type GrowthBookRule struct {
	Key         string              `json:"key"`
	Seed        string              `json:"seed"`
	HashVersion int                 `json:"hashVersion"`
	Attribute   string              `json:"hashAttribute"`
	Variations  []json.RawMessage   `json:"variations"`
	Ranges      [][2]json.Number    `json:"ranges"`
	Meta        []GrowthBookVariant `json:"meta"`
	Phase       string              `json:"phase"`
}

// A GrowthBookVariant is an arm of an epoch.
type GrowthBookVariant struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

// GrowthBookOf is a plan's feature, which gives units without an id another arm. Arms of the plan's epoch come first.
// Those of so many epochs before it, if they are not too many, have no buckets: a sticky bucket that names one is
// found, and keeps its arm.
func GrowthBookOf(p lease.Plan, epochs float64, without lease.Share) GrowthBookFeature {
	if p.Reason != "" { // everybody gets one arm, and nobody is assigned
		return GrowthBookFeature{Default: valueOf(p.Arms[0])}
	}
	rule := GrowthBookRule{Key: p.Experiment, Seed: p.Salt.String(), HashVersion: 2, Attribute: "id",
		Phase: strconv.FormatUint(p.Epoch, 10)}
	edge := func(buckets int) json.Number { // the same float64 as the client's quotient
		return json.Number(strconv.FormatFloat(float64(buckets)/lease.Buckets, 'g', -1, 64))
	}
	before := uint64(max(0, min(epochs, float64(GrowthBookVariations/len(p.Arms)-1))))
	for back := uint64(0); back <= before && back < p.Epoch; back++ {
		from := 0
		for _, a := range p.Arms {
			to := from
			if back == 0 {
				to += a.Buckets
			}
			rule.Variations = append(rule.Variations, valueOf(a))
			rule.Ranges = append(rule.Ranges, [2]json.Number{edge(from), edge(to)})
			rule.Meta = append(rule.Meta, GrowthBookVariant{fmt.Sprintf("%s:%d", a.Arm, p.Epoch-back), a.Arm})
			from = to
		}
	}
	return GrowthBookFeature{Default: valueOf(without), Rules: []GrowthBookRule{rule}}
}

// valueOf is what an arm gives: its name, if it was declared without a value.
func valueOf(a lease.Share) json.RawMessage {
	if len(a.Value) > 0 && string(a.Value) != "null" {
		return a.Value
	}
	name, _ := json.Marshal(a.Arm) // a string
	return name
}

// GrowthBookError is what its own servers say of a request that they refuse.
type GrowthBookError struct {
	Status int    `json:"status"`
	Error  string `json:"error"`
}

// viewed is the event that has an exposure.
const viewed = "Experiment Viewed"

// GrowthBookExposures reads what a tracking plugin sends: its exposures. Whatever else it sends is
// somebody else's, and counts nowhere: what came of a decision must not be on the way of an exposure.
func GrowthBookExposures(body []byte) (out []serve.Exposure, err error) {
	var all []object
	if !utf8.Valid(body) || json.Unmarshal(body, &all) != nil {
		return nil, wrong("body", "must be an array of objects, as the client's tracking plugin sends it")
	}
	for i, raw := range all {
		e, err := exposureOf(raw)
		if err != nil {
			return nil, at(fmt.Sprintf("[%d]", i), err)
		}
		if e != nil {
			out = append(out, *e)
		}
	}
	return out, nil
}

// exposureOf is that of an event, nil if it has none or its unit is no text or number.
func exposureOf(raw object) (*serve.Exposure, error) {
	name, err := text(raw, "event_name")
	if err != nil || name != viewed {
		return nil, err
	}
	var of object
	if json.Unmarshal(raw["properties_json"], &of) != nil {
		return nil, wrong("properties_json", "must be an object")
	}
	out := &serve.Exposure{Hash: lease.GrowthBook}
	// Of a number the client has hashed what it writes.
	if n := of["hashValue"]; len(n) > 0 && (n[0] == '-' || n[0] >= '0' && n[0] <= '9') {
		out.Unit = string(n)
	} else if out.Unit, err = text(of, "hashValue"); err != nil {
		return nil, nil // one visitor's own, which must not be in the way of the others
	}
	if out.Experiment, err = text(of, "experimentId"); err != nil {
		return nil, at("properties_json", err)
	}
	variation, err := text(of, "variationId")
	if err != nil {
		return nil, at("properties_json", err)
	}
	cut := strings.LastIndexByte(variation, ':')
	if out.Epoch, err = strconv.ParseUint(variation[cut+1:], 10, 64); err != nil || cut < 1 {
		return nil, nil // of an experiment that is not ours
	}
	out.Arm = variation[:cut]
	return out, nil
}
