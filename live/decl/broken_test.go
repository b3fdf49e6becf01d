package decl_test

import (
	"github.com/sotto-dp/sotto/live/decl"
	"strings"
	"testing"
)

// A live experiment that is no YAML is told where, and not that it is no experiment.
func TestBrokenLiveFile(t *testing.T) {
	for _, text := range []string{
		"name: shop\narms: [a, b\npolicy: {policy: dp-klucb}\nbudget: {epsilon: 1}\nwindow: 24h\n",
		"name: shop\nwindow: 24h\n\tfloor: 0.1\narms: [{name: a}]\n",
	} {
		if !(decl.Reader{}).Is([]byte(text)) {
			t.Error("taken for a simulated experiment")
		}
		_, err := decl.Parse("shop.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "shop.yaml:3:") {
			t.Errorf("%v", err)
		}
	}
}
