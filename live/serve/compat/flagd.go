package compat

import (
	"encoding/json"

	"github.com/sotto-dp/sotto/live/lease"
)

// Flagd's flag definitions (https://flagd.dev/schema/v0/flags.json), which flagd fetches from FlagdFlags and its
// providers read from a file. A plan is a flag whose targeting is fractional: of buckets, by the plan's salt
// and the targetingKey. An evaluation's metadata has the epoch, which an exposure names.
const (
	FlagdFlags  = "/v1/flagd"
	flagdSchema = "https://flagd.dev/schema/v0/flags.json"
)

// FlagdDefinitions are all flags.
type FlagdDefinitions struct {
	Schema string               `json:"$schema"`
	Flags  map[string]FlagdFlag `json:"flags"`
}

// FlagdDefinitionsOf are those of experiments by their names.
func FlagdDefinitionsOf(flags map[string]FlagdFlag) FlagdDefinitions {
	return FlagdDefinitions{flagdSchema, flags}
}

// A FlagdFlag is an experiment.
type FlagdFlag struct {
	State     string                     `json:"state"`
	Variants  map[string]json.RawMessage `json:"variants"`
	Default   string                     `json:"defaultVariant"`
	Targeting map[string]any             `json:"targeting,omitempty"`
	Metadata  map[string]any             `json:"metadata,omitempty"`
}

// FlagdOf is a plan's flag. Without a targetingKey everybody gets one arm of the plan, of the reason DEFAULT.
func FlagdOf(p lease.Plan, without string) FlagdFlag {
	out := FlagdFlag{State: "ENABLED", Variants: map[string]json.RawMessage{}, Default: without}
	unit := map[string]any{"var": "targetingKey"}
	fractional := []any{map[string]any{"cat": []any{p.Salt.String(), unit}}}
	for _, a := range p.Arms {
		out.Variants[a.Arm] = valueOf(a)
		fractional = append(fractional, []any{a.Arm, a.Buckets})
	}
	if p.Reason != "" { // everybody gets one arm, and nobody is assigned
		out.Default = p.Arms[0].Arm
		return out
	}
	out.Targeting = map[string]any{"if": []any{unit, map[string]any{"fractional": fractional}, nil}}
	out.Metadata = map[string]any{"experiment": p.Experiment, "epoch": p.Epoch}
	return out
}
