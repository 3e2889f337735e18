package roundtrip

import (
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
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
	body = scrub.Renumber(body)
	key := exchange.Key{Method: r.Method, URL: p.MaskURL(r.URL), Request: cas.Sum(body)}
	return &exchange.Identity{Key: key, Surface: body}, nil
}

// MaskURL implements exchange.Classifier.
func (plain) MaskURL(scrubbed string) string { return string(scrub.Renumber([]byte(scrubbed))) }

// Traits implements exchange.Classifier.
func (plain) Traits(*exchange.Request) *exchange.Traits { return new(exchange.Traits) }
