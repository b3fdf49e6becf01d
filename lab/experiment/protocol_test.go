package experiment_test

import (
	"context"
	"fmt"
	"github.com/sotto-dp/sotto/lab/experiment"
	"testing"
)

// Under every protocol users draw the same noise, so the same arms are played.
func TestProtocolsPlayAlike(t *testing.T) {
	spec, err := experiment.Reader{}.Parse("protocols.yaml", []byte(`
name: protocols
horizon: 150
runs: 2
trust: secagg
instances: [{name: two, bernoulli: [0.9, 0.2]}]
policies:
  - {policy: batch-se, name: plain, protocol: plain}
  - {policy: batch-se, name: bell, protocol: bell2020}
  - {policy: batch-se, name: total}
  - {policy: batch-se, name: prio, protocol: prio3}
  - {policy: batch-se, name: servers, trust: two-server, protocol: plain}
budgets: [{epsilon: 2}]
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := experiment.Run(context.Background(), spec, experiment.Options{Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	plain, bell := r.Cells[0], r.Cells[1]
	if fmt.Sprint(plain.Regret.Mean) != fmt.Sprint(bell.Regret.Mean) || plain.Hash == bell.Hash {
		t.Errorf("plain: %v\nbell: %v", plain.Regret.Mean, bell.Regret.Mean)
	}
	if prio, servers := r.Cells[3],
		r.Cells[4]; fmt.Sprint(prio.Regret.Mean) != fmt.Sprint(servers.Regret.Mean) ||
		prio.Trust != "secagg/laplace prio3" {
		t.Errorf("prio, trust %q: %v\nin the open: %v", prio.Trust, prio.Regret.Mean, servers.Regret.Mean)
	}
	if plain.Trust != "secagg/polya plain" || bell.Trust != "secagg/polya bell2020" ||
		r.Cells[2].Trust != "secagg/polya" {
		t.Errorf("trust is %q, %q, %q", plain.Trust, bell.Trust, r.Cells[2].Trust)
	}
}
