package exchange

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// cleaned is a request without its secrets, in the two forms that it is needed in.
type cleaned struct {
	request *Request           // decoded: what a Classifier is given
	headers []tape.HeaderField // as they stand on the tape
	stored  []byte             // the body as it stands on the tape; nil for none
	extra   []tape.Field
	plain   []byte        // the body as the program sent it, decoded; as it came where it does not decode
	named   []scrub.Named // what names in the body gave away
	flow    []scrub.Named // and what the query did, as part of an OAuth flow
}

// clean scrubs a request. What its header, its query and its body say of secrets is learnt first, for any of them may hold what
// another one names. A body with a Content-Encoding is kept as it came unless a secret lies inside; one that does not decode
// cannot be scanned and is not kept.
func (t *Tap) clean(r *Request) cleaned {
	t.naming.RLock()
	defer t.naming.RUnlock()
	s, plain := t.scrubber, r.Body
	var err error
	if encoding := r.Header.Get("Content-Encoding"); len(plain) > 0 && encoded(encoding) {
		plain, err = Decode(encoding, r.Body, t.opts.MaxBody)
	}
	s.LearnHeader(r.Header)
	s.LearnURL(r.URL)
	c := cleaned{plain: plain, flow: s.NamedInURL(r.URL)}
	hidden := false
	if err == nil {
		c.named = s.Named(r.Header.Get("Content-Type"), plain)
		_, over := s.LearnAll(c.named)
		plain, hidden = s.HideAt(plain, over), len(over) > 0
	}
	c.request = &Request{Method: r.Method, URL: s.URL(r.URL)}
	without := c.body(s, r, plain, hidden, err)
	all := learnedFields(s, r.Header)
	c.request.Header = HeaderOf(all)
	c.request.Header.Del("Content-Encoding")
	c.headers = slices.DeleteFunc(all, func(f tape.HeaderField) bool {
		return slices.Contains(without, http.CanonicalHeaderKey(f.Name))
	})
	return c
}

// body fills in both forms of the body, whose decoded form is plain, in which something may be hidden already, or could not be
// had. It returns the headers that no longer hold for the stored one.
func (c *cleaned) body(s *scrub.Scrubber, r *Request, plain []byte, hidden bool, err error) (without []string) {
	encoding := r.Header.Get("Content-Encoding")
	if len(r.Body) == 0 || !encoded(encoding) {
		c.request.Body, _ = s.LearnBytes(plain)
		c.stored = c.request.Body
		return nil
	}
	if err != nil {
		c.request.Body, _ = s.LearnBytes(r.Body)
		c.extra = append(c.extra, field("request_lost", "the body cannot be scanned for secrets: "+err.Error()))
		return nil
	}
	var found bool
	c.request.Body, found = s.LearnBytes(plain)
	if !found && !hidden {
		c.stored = r.Body
		return nil
	}
	c.stored = c.request.Body
	c.extra = append(c.extra, field("request_decoded", encoding))
	return []string{"Content-Encoding", "Content-Length"}
}

// keepRequest puts the body of the request into the store, once. Where the recorded exchange that answers it has the same
// one, it is shared with that. o.err is then the recorder's error, which has ended.
func (o *Open) keepRequest() {
	body := o.unkept
	if o.unkept = nil; len(body) == 0 {
		return
	}
	if o.taken != nil && o.from != nil && shared(o.taken.Exchange.RequestPayload, body, o.tap.rec.Store(), o.from) {
		o.exchange.RequestPayload = o.taken.Exchange.RequestPayload
		return
	}
	o.exchange.RequestPayload, o.err = o.tap.rec.Payload(body)
}

// shared reports whether p is the payload of body, and is in the store to now.
func shared(p *tape.Payload, body []byte, to, from cas.Store) bool {
	switch {
	case p == nil || p.Len != int64(len(body)):
		return false
	case p.Inline:
		return p.Text == string(body)
	}
	return p.Hash == cas.Sum(body) && cas.Copy(to, from, p.Hash) == nil
}

// quote returns s as a JSON string, <, > and & as they are.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always has a JSON form
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
