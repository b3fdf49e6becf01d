package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// fingerprintFile is where an output directory keeps a hash of its logged rewards, so that a run is
// not gone on with, and shards are not joined, after a log has changed. It would tell who has a
// guess of the log that it is right. So it is in no file that is made to be shown, and no other
// hash is made from it: those of the experiment and of its cells are of the logs' names and sizes.
const fingerprintFile = "log.fingerprint"

// contentHash is the part of an instance's content that is a hash of its rewards.
var contentHash = regexp.MustCompile(`,sha256=[0-9a-f]{64}`)

// logged gives every world what may be told of its content, and says once that what is computed
// from logged rewards is as private as they are.
func (p *Resolved) logged(worlds []environment) {
	var files []string
	h := sha256.New()
	for i := range worlds {
		w := &worlds[i]
		w.public = w.content
		if csv := p.Spec.Instances[i].CSV; csv != "" {
			w.public = fmt.Sprintf("csv=%q %s", csv, contentHash.ReplaceAllString(w.content, ""))
			files = append(files, csv)
			fmt.Fprintf(h, "%q %q\n", csv, w.content)
		}
	}
	if files == nil {
		return
	}
	p.fingerprint = hex.EncodeToString(h.Sum(nil))
	p.warn("%s: simulations on logged rewards know their exact means, so that all that is "+
		"printed and written here is as private as the log, whatever the policies promise",
		strings.Join(files, ", "))
}
