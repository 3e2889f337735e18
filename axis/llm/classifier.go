package llm

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// A Classifier finds out what a request is. It implements exchange.Classifier and may be used by several goroutines at
// once.
type Classifier struct {
	masker    *scrub.Masker
	providers []Provider
}

var _ exchange.Classifier = (*Classifier)(nil)

// NewClassifier returns a Classifier that asks the providers in order; with none given, those of Providers. Digests are
// taken after m has masked; a nil m masks nothing.
func NewClassifier(m *scrub.Masker, providers ...Provider) *Classifier {
	if len(providers) == 0 {
		providers = Providers()
	}
	return &Classifier{masker: m, providers: providers}
}

// Classify implements exchange.Classifier. The only error is a URL that does not parse.
func (c *Classifier) Classify(r *exchange.Request) (*exchange.Identity, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, fmt.Errorf("llm: url of the request: %w", err)
	}
	body, jsonErr := canonjson.Parse(r.Body)
	if jsonErr != nil {
		return c.plain(r, r.Body), nil
	}
	if r.Method == http.MethodPost && body.Kind == canonjson.Object {
		for _, p := range c.providers {
			if id, ok := c.call(p, u, body); ok {
				return id, nil
			}
		}
	}
	return c.plain(r, body.Append(nil)), nil
}

// MaskURL implements exchange.Classifier.
func (c *Classifier) MaskURL(scrubbed string) string { return string(c.comparable([]byte(scrubbed))) }

// plain identifies a request that is no call of a model.
func (c *Classifier) plain(r *exchange.Request, body []byte) *exchange.Identity {
	surface := c.comparable(body)
	return &exchange.Identity{
		Key: exchange.Key{
			Kind:    exchange.HTTP,
			Method:  r.Method,
			URL:     c.MaskURL(r.URL),
			Request: cas.Sum(surface),
		},
		Surface: surface,
	}
}

// call identifies a request as p's, where it is.
func (c *Classifier) call(p Provider, u *url.URL, body canonjson.Value) (*exchange.Identity, bool) {
	endpoint, model, ok := p.Endpoint(u.Path)
	if !ok {
		return nil, false
	}
	call, ok := p.Read(body)
	if !ok {
		return nil, false
	}
	if model == "" {
		model = call.Model
	}
	m := c.maskCall(call)
	surface := m.surface()
	params := c.comparable(object(append(call.Params, queryParams(u)...)...).Append(nil))
	return &exchange.Identity{
		Key: exchange.Key{
			Kind:     exchange.LLM,
			Provider: p.Name(),
			Endpoint: endpoint,
			Model:    model,
			Params:   cas.Sum(params),
			Request:  cas.Sum(surface),
		},
		Opening:   m.opening(),
		Turns:     m.turns(),
		Surface:   surface,
		Params:    params,
		Usage:     func(_ string, answer []byte) []byte { return p.Usage(answer) },
		ErrorBody: p.ErrorBody,
	}, true
}

// queryParams returns the query of a URL as a parameter: it may change the answer, as alt=sse does. Credentials do not.
func queryParams(u *url.URL) []canonjson.Member {
	query := u.Query()
	var members []canonjson.Member
	for key, values := range query {
		if key == "key" || key == "api_key" || key == "access_token" {
			continue
		}
		list := array()
		for _, v := range values {
			list.Elems = append(list.Elems, text(v))
		}
		members = append(members, canonjson.Member{Key: "?" + key, Value: list})
	}
	return members
}

// comparable returns b as it compares: renumbered and masked.
func (c *Classifier) comparable(b []byte) []byte { return c.mask(scrub.Renumber(b)) }

// mask returns b without its volatile facts.
func (c *Classifier) mask(b []byte) []byte {
	if c.masker == nil {
		return b
	}
	return c.masker.Mask(b)
}
