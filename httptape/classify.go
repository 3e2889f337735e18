package httptape

import (
	"encoding/json"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// classifier is package llm's, with the headers that matter as a part of what a request is.
type classifier struct {
	*llm.Classifier
	masker  *masks.Masker
	headers []string // in canonical form
}

func newClassifier(o *Options) (*classifier, error) {
	masker, err := bare.NewMasker(o.Masks)
	if err != nil {
		return nil, err
	}
	c := &classifier{masker: masker}
	c.Classifier = llm.NewClassifier(c.masker)
	for _, name := range o.Headers {
		c.headers = append(c.headers, http.CanonicalHeaderKey(name))
	}
	return c, nil
}

// Classify implements exchange.Classifier.
func (c *classifier) Classify(r *exchange.Request) (*exchange.Identity, error) {
	id, err := c.Classifier.Classify(r)
	if err != nil || len(c.headers) == 0 {
		return id, err
	}
	id.Surface = c.surface(id.Surface, r.Header)
	id.Key.Request = cas.Sum(id.Surface)
	return id, nil
}

// surface is what must be equal where headers matter: {"body":…,"headers":{…}}.
func (c *classifier) surface(body []byte, h http.Header) []byte {
	s := struct {
		Body    any                 `json:"body"`
		Headers map[string][]string `json:"headers"`
	}{string(body), make(map[string][]string)}
	if json.Valid(body) {
		s.Body = json.RawMessage(body)
	}
	for _, name := range c.headers {
		for _, value := range h[name] {
			s.Headers[name] = append(s.Headers[name], c.comparable(value))
		}
	}
	b, err := json.Marshal(s)
	if err != nil { // json.Valid has seen the body: nothing here has no JSON form
		panic(err)
	}
	return b
}

// comparable returns a text without what differs from run to run.
func (c *classifier) comparable(text string) string {
	return string(c.masker.Mask(scrub.Renumber([]byte(text))))
}
