package exchange

import (
	"errors"
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Search looks for what a Scrubber knows in what was recorded. A blob that many records name is read once, as long as
// nothing is found in it. It is for one goroutine.
type Search struct {
	store cas.Store
	find  *scrub.Scrubber
	clean map[reading]bool
}

// A reading is a blob, and how it is read.
type reading struct {
	hash     cas.Digest
	encoding string
	request  bool
	cut      bool
}

// NewSearch returns a Search for what find knows, in records whose blobs are in store.
func NewSearch(store cas.Store, find *scrub.Scrubber) *Search {
	return &Search{store: store, find: find, clean: make(map[reading]bool)}
}

// Holds reports whether the exchange of r holds something: in a string, in a body, or in what a body decodes to. The errors
// are those of the store.
func (s *Search) Holds(r *tape.Record) (bool, error) {
	restoreHeaders(r)
	x := tape.ExchangeOf(r.Kind)
	for _, p := range tape.Strings(r.Kind) {
		if s.find.String(*p) != *p {
			return true, nil
		}
	}
	for _, f := range *tape.Extras(r.Kind) {
		if _, found := s.find.Bytes(f.Value); found {
			return true, nil
		}
	}
	if found, err := s.request(x); found || err != nil {
		return found, err
	}
	return s.response(x)
}

// Payload reports whether the bytes of p hold something. The errors are those of the store.
func (s *Search) Payload(p *tape.Payload) (bool, error) {
	return s.once(p, reading{}, func() (bool, error) {
		r, err := p.Open(s.store)
		if err != nil {
			return false, err
		}
		defer r.Close()
		w := s.find.Writer(io.Discard)
		_, err = io.Copy(w, r)
		err = errors.Join(err, w.Close())
		return w.Found(), err
	})
}

// once does look unless it found nothing in p before, read in that way.
func (s *Search) once(p *tape.Payload, as reading, look func() (bool, error)) (bool, error) {
	as.hash = p.Hash
	if !p.Inline && s.clean[as] {
		return false, nil
	}
	found, err := look()
	if !p.Inline && !found && err == nil {
		s.clean[as] = true
	}
	return found, err
}

func (s *Search) request(x *tape.Exchange) (bool, error) {
	if x.RequestPayload == nil {
		return false, nil
	}
	encoding := HeaderOf(x.RequestHeaders).Get("Content-Encoding")
	return s.once(x.RequestPayload, reading{request: true, encoding: encoding}, func() (bool, error) {
		b, err := x.RequestPayload.Bytes(s.store)
		if err != nil {
			return false, err
		}
		// One that does not decode was not kept.
		if plain, err := Decode(encoding, b, DefaultMaxBody); err == nil {
			b = plain
		}
		_, found := s.find.Bytes(b)
		return found, nil
	})
}

func (s *Search) response(x *tape.Exchange) (bool, error) {
	if x.Response == nil {
		return false, nil
	}
	encoding := HeaderOf(x.ResponseHeaders).Get("Content-Encoding")
	if !encoded(encoding) {
		return s.Payload(x.Response)
	}
	cut := x.Error != ""
	return s.once(x.Response, reading{encoding: encoding, cut: cut}, func() (bool, error) {
		b, err := x.Response.Bytes(s.store)
		if err != nil || len(b) == 0 {
			return false, err
		}
		answer := &packedBody{scrubber: s.find, encoding: encoding, limit: DefaultMaxBody, raw: b}
		answer.at.add(tape.Chunk{}, len(b))
		return answer.scan(cut)
	})
}
