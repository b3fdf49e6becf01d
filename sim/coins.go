package sim

import (
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
)

// NewCoins makes a stream the coins of a run's policy. Give it the stream of role
// noise.RolePolicy, used for nothing else: a policy is restored by replaying its transcript with
// the same stream from its start.
func NewCoins(s *noise.Fast) policy.Coins { return s }
