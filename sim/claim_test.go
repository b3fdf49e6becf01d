package sim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// DP-TT's answer is proved for Laplace noises that are counted, and for one a release where means
// forget: with any other, or without clipping, the run says so.
func TestAClaimIsAboutTheNoise(t *testing.T) {
	forgets := []identify.TopTwoOption{identify.WithForgetting()}
	for _, c := range []struct {
		name      string
		trust     *release.Trust
		unclipped bool
		proved    bool
		options   []identify.TopTwoOption
	}{
		{"continuous", nil, false, true, nil},
		{"central", &release.Trust{Model: privacy.TrustCentral, P: 1e-6}, false, true, nil},
		{"central, forgetting", &release.Trust{Model: privacy.TrustCentral, P: 1e-6}, false, true, forgets},
		{"central skellam", &release.Trust{Model: privacy.TrustCentral, Noise: privacy.NoiseSkellam,
			Like: privacy.ZCDP{}, P: 1e-6}, false, false, nil},
		{"local", &release.Trust{Model: privacy.TrustLocal, P: 1e-6}, false, true, nil},
		{"two servers", &release.Trust{Model: privacy.TrustTwoServer, P: 1e-6}, false, true, nil},
		{"two servers, per arm", &release.Trust{Model: privacy.TrustTwoServer, P: 1e-6}, false, true,
			[]identify.TopTwoOption{identify.WithPerArmThreshold()}},
		{"two servers, forgetting", &release.Trust{Model: privacy.TrustTwoServer, P: 1e-6}, false, false, forgets},
		{"secagg", &release.Trust{Model: privacy.TrustSecAgg, P: 1e-6}, false, true, nil},
		{"shuffle", &release.Trust{Model: privacy.TrustShuffle, P: 1e-6}, false, false, nil},
		{"unclipped", nil, true, false, nil},
	} {
		rule, err := identify.NewDPTT(2, privacy.Pure{Epsilon: 1}, 0.1, c.options...)
		if err != nil {
			t.Fatal(err)
		}
		in := bandit.Instance{Arms: []bandit.Law{coin(t, 0.9), coin(t, 0.1)}}
		key := noise.Key{Seed: 3, Role: noise.RoleReward}
		stream := noise.Key{Seed: 3, Role: noise.RoleNoise}.Fast(1)
		var out sim.IdentifyResult
		if err := sim.Identify(context.Background(),
			sim.IdentifyConfig{Policy: rule, Instance: in, Cap: 2000, Rewards: key.Fast(2), Noise: &stream[0],
				Trust: c.trust, Unclipped: c.unclipped}, &out); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if out.Releases == 0 || (out.Claim == nil) != c.proved || !c.proved &&
			!errors.Is(out.Claim, identify.ErrUnproved) {
			t.Errorf("%s: after %d releases the claim is %v", c.name, out.Releases, out.Claim)
		}
	}
}

func coin(t *testing.T, p float64) bandit.Law {
	b, err := bandit.NewBernoulli(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
