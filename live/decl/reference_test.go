package decl

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
)

// The page of live experiments names every key that they have.
func TestLiveKeysAreOnTheirPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys(catalog.Catalog{}, catalog.BanditIdentify) {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + k.Name + "`[^|]*\\|").Match(page) {
			t.Errorf("docs/serve.md has no row for the key %s", k.Name)
		}
	}
	if page, err = os.ReadFile("../../docs/contextual.md"); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(keyed.Names(contextualKeys()), keyed.Names(featureKeys())) {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + name + "[`:][^|]*\\|").Match(page) {
			t.Errorf("docs/contextual.md has no row for the key %s", name)
		}
	}
}
