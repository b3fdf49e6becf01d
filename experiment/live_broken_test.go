package experiment_test

import (
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/experiment"
)

// A live experiment that is no YAML is told where, and not that it is no experiment.
func TestBrokenLiveFile(t *testing.T) {
	for _, text := range []string{
		"name: shop\narms: [a, b\npolicy: {policy: dp-klucb}\nbudget: {epsilon: 1}\nwindow: 24h\n",
		"name: shop\nwindow: 24h\n\tfloor: 0.1\narms: [{name: a}]\n",
	} {
		var r experiment.Reader
		_, _, err := r.ReadAny(strings.NewReader(text), "shop.yaml")
		if err == nil || !strings.HasPrefix(err.Error(), "shop.yaml:3:") {
			t.Errorf("%v", err)
		}
	}
}
