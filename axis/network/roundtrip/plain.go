package roundtrip

import (
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// plain is a classifier that knows no provider and masks nothing.
type plain struct{ exchange.NoModels }

// Classify implements exchange.Classifier.
func (p plain) Classify(r *exchange.Request) (*exchange.Identity, error) {
	body := r.Body
	if v, err := canonjson.Parse(r.Body); err == nil {
		body = v.Append(nil)
	}
	return exchange.HTTPIdentity(r.Method, p.MaskURL(r.URL), scrub.Renumber(body)), nil
}

// MaskURL implements exchange.Classifier.
func (plain) MaskURL(scrubbed string) string { return string(scrub.Renumber([]byte(scrubbed))) }

// Traits implements exchange.Classifier.
func (plain) Traits(*exchange.Request) *exchange.Traits { return new(exchange.Traits) }
