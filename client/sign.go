package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"
)

// AnyExperiment has SignUnit sign for all experiments of the service.
const AnyExperiment = "*"

// SignUnit signs the name of a unit for a page, which sends it to the service with a key of the scope
// browser: as unit_token, or as OpenFeature's targetingKey. Key is one of the scope sign, and stays
// on the product's server. Until then, rounded down to a second, whoever has what it returns gets the
// unit's decisions in the experiment: give it to them alone, and for no longer than their visit.
//
// It is base64url(unit) "." seconds "." base64url(mac), where mac is the HMAC-SHA256, under the
// SHA-256 of the key, of the experiment, a line feed, and what comes before the second dot.
func SignUnit(key, experiment, unit string, until time.Time) string {
	hash := sha256.Sum256([]byte(key))
	text := base64.RawURLEncoding.EncodeToString([]byte(unit)) + "." + strconv.FormatInt(until.Unix(), 10)
	mac := hmac.New(sha256.New, hash[:])
	mac.Write([]byte(experiment + "\n" + text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
