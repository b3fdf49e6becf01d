package page

import (
	"embed"
	"io/fs"
	"net/http"
	"sync"

	"github.com/sotto-dp/sotto/internal/look"
)

//go:embed assets
var assetFiles embed.FS

// newAssets has what pages fetch: what all pages have, and what these have of their own. It is what is
// embedded, hashed and compressed once for all services of a process: audits have thousands.
var newAssets = sync.OnceValue(func() *look.Assets {
	own, err := fs.Sub(assetFiles, "assets")
	if err != nil {
		panic(err) // it is embedded
	}
	a, err := look.NewAssets("/assets/", look.Files(), own)
	if err != nil {
		panic(err) // they are embedded
	}
	return a
})

// Asset serves a file.
func (p *Pages) Asset(w http.ResponseWriter, r *http.Request) error {
	if _, err := p.assets.Path(r.PathValue("file")); err != nil {
		return &FieldError{http.StatusNotFound, "", "there is no such file"}
	}
	p.assets.ServeHTTP(w, r)
	return nil
}
