package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleNewAggregated() {
	// A batch of 100 users, all of whom answer; ε = 1, p = 0.01.
	for _, noise := range []privacy.NoiseName{privacy.NoisePolya, privacy.NoiseSkellam, privacy.NoiseGaussian} {
		m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: noise, Epsilon: 1, S: 1, Users: 100, Invited: 100, P: 0.01})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(m, m.Bits(), "bits")
		fmt.Println(" ", m.Loss())
	}
	// Output:
	// aggregated(trust=secagg,noise=polya,g=10,users=100,invited=100,modulus=1107,tau=53,num=10,den=1) 11 bits
	//   epsilon=1
	// aggregated(trust=secagg,noise=skellam,g=10,users=100,invited=100,modulus=1109,tau=54,num=1,den=1) 11 bits
	//   rho=1.009
	// aggregated(trust=secagg,noise=gaussian,g=10,users=100,invited=100,modulus=1067,tau=33,num=1,den=1) 11 bits
	//   rho=0.5001369471747651
}

func ExampleAggregated_LossWith() {
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: privacy.NoisePolya, Epsilon: 0.1, S: 1, Users: 4096, Invited: 4096,
		P: 0.01})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("all answer: %.2f, half: %.2f\n", m.LossWith(4096).Pure(), m.LossWith(2048).Pure())
	// Output:
	// all answer: 0.10, half: 0.96
}

func calibration(t *rapid.T) privacy.Calibration {
	c := privacy.Calibration{
		Epsilon: math.Exp(rapid.Float64Range(-5, 2).Draw(t, "log epsilon")),
		S:       1 + rapid.Float64Range(0, 20).Draw(t, "s - 1"),
		P:       math.Exp(rapid.Float64Range(-20, -0.1).Draw(t, "log p")),
		Users:   int(math.Exp(rapid.Float64Range(0, 14).Draw(t, "log users"))),
	}
	c.Invited = c.Users
	if rapid.Bool().Draw(t, "dropouts") {
		c.Invited += rapid.IntRange(0, c.Users).Draw(t, "more")
	}
	c.Trust = rapid.SampledFrom([]privacy.Trust{privacy.TrustCentral, privacy.TrustLocal, privacy.TrustSecAgg}).Draw(t, "trust")
	noises := []privacy.NoiseName{privacy.NoiseLaplace, privacy.NoiseSkellam, privacy.NoiseGaussian}
	if c.Trust == privacy.TrustSecAgg {
		noises[0] = privacy.NoisePolya
	}
	c.Noise = rapid.SampledFrom(noises).Draw(t, "noise")
	return c
}

func aggregated(t testing.TB, c privacy.Calibration) privacy.Aggregated {
	t.Helper()
	m, err := privacy.NewAggregated(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAggregatedReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := privacy.NewAggregated(calibration(t))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := privacy.UnmarshalMechanism(data); got != m || err != nil {
			t.Fatalf("%s reads back as %v, %v", data, got, err)
		}
	})
}

func TestBadAggregated(t *testing.T) {
	good := privacy.Calibration{Trust: privacy.TrustSecAgg, Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: 100, Invited: 120, P: 0.01}
	for _, c := range []struct {
		change  func(*privacy.Calibration)
		mention string
	}{
		{func(c *privacy.Calibration) { c.Trust = "nobody" }, `trust is "nobody"`},
		{func(c *privacy.Calibration) { c.Trust = privacy.TrustShuffle }, `trust is "shuffle"`},
		{func(c *privacy.Calibration) { c.Noise = "laplace" }, `noise is "laplace": for trust "secagg" it must be`},
		{func(c *privacy.Calibration) { c.Trust = "local" }, `noise is "polya": for trust "local" it must be`},
		{func(c *privacy.Calibration) { c.Epsilon = 0 }, "epsilon is 0"},
		{func(c *privacy.Calibration) { c.Epsilon = math.NaN() }, "epsilon is NaN"},
		{func(c *privacy.Calibration) { c.Epsilon = math.Inf(1) }, "epsilon is +Inf"},
		{func(c *privacy.Calibration) { c.S = 0.99 }, "s is 0.99: it must be finite and at least 1"},
		{func(c *privacy.Calibration) { c.S = math.NaN() }, "s is NaN"},
		{func(c *privacy.Calibration) { c.S = math.Inf(1) }, "s is +Inf"},
		{func(c *privacy.Calibration) { c.P = 0 }, "p is 0: it must be above 0 and below 1"},
		{func(c *privacy.Calibration) { c.P = 1 }, "p is 1:"},
		{func(c *privacy.Calibration) { c.P = math.NaN() }, "p is NaN"},
		{func(c *privacy.Calibration) { c.Users = 0 }, "users is 0: a batch must have at least 1"},
		{func(c *privacy.Calibration) { c.Invited = 99 }, "invited is 99: it must be at least users, 100"},
		{func(c *privacy.Calibration) { c.Epsilon = 1e18 }, "precision g = s·ε·√n is 1.095e+19 for s = 1, ε = 1e+18, n = 120: it must be below 2^63"},
		{func(c *privacy.Calibration) { c.S = math.MaxFloat64; c.Epsilon = 1e9 }, "precision g = s·ε·√n is +Inf"},
		{func(c *privacy.Calibration) { c.Epsilon = 1e17 }, "n·g + 2τ + 1 with n = 120, g = 1095445115010321280, τ = 114: it must be below 2^63"},
		{func(c *privacy.Calibration) { c.Epsilon = 1e-300 }, "scale g/ε is 1e+300"},
		{func(c *privacy.Calibration) { c.Noise = "skellam"; c.Epsilon = 1e-10 }, "variance g²/(nε²) is 1e+18"},
	} {
		d := good
		c.change(&d)
		if m, err := privacy.NewAggregated(d); err == nil || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%+v: %v, %v: want %s", d, m, err, c.mention)
		}
	}
	m := aggregated(t, good)
	for _, c := range []struct {
		change  func(*privacy.Aggregated)
		mention string
	}{
		{func(m *privacy.Aggregated) { m.Modulus-- }, fmt.Sprintf("modulus is %d: it must be at least n·g + 2τ + 1 = %d, for n = 120, g = 11, τ = %d", m.Modulus-1, m.Modulus, m.Tau)},
		{func(m *privacy.Aggregated) { m.Modulus = -1 }, "modulus is -1"},
		{func(m *privacy.Aggregated) { m.G = 0 }, "g is 0: it must be at least 1"},
		{func(m *privacy.Aggregated) { m.Tau = -1 }, "tau is -1: it must be at least 0"},
		{func(m *privacy.Aggregated) { m.Den = 0 }, "den is 0"},
		{func(m *privacy.Aggregated) { m.Users = -3 }, "users is -3"},
		{func(m *privacy.Aggregated) { m.Tau = math.MaxInt64 }, "it must be below 2^63"},
		{func(m *privacy.Aggregated) { m.G = math.MaxInt64 / 100 }, "it must be below 2^63"},
	} {
		d := m
		c.change(&d)
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%+v: %v: want %s", d, err, c.mention)
		}
		if !d.Loss().Infinite() {
			t.Errorf("%+v has a finite loss", d)
		}
	}
	// Secure aggregation without noise is valid, and costs ∞.
	m.Num = 0
	if err := m.Validate(); err != nil || !m.Loss().Infinite() || m.Tail() != (privacy.Tail{}) {
		t.Errorf("%v: %v, loss %v", m, err, m.Loss())
	}
	for _, s := range []string{`{"mechanism":"aggregated"}`, `{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":1,"invited":1,"modulus":2,"tau":0,"num":1}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":1,"invited":1,"modulus":1,"tau":0,"num":1,"den":1}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1.5,"users":1,"invited":1,"modulus":2,"tau":0,"num":1,"den":1}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":1,"invited":1,"modulus":2,"tau":0,"num":-1,"den":1}`,
		`{"mechanism":"aggregated","trust":"secagg","noise":"polya","g":1,"users":1,"invited":1,"modulus":2,"tau":0,"num":1,"den":1,"scale":1}`} {
		if m, err := privacy.UnmarshalMechanism([]byte(s)); err == nil {
			t.Errorf("UnmarshalMechanism(%s) = %v", s, m)
		}
	}
}
