package exchange

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Again records the exchange of r once more, as it would stand on the tape if its recorder had known from the beginning what
// s knows: what r says is changed in place, but for its place in time. The payloads are read from store, and what takes
// their place is put there. So a request gets the digest that a replay takes of it which knows the secrets early, its lane
// the name of the opening that the replay sees, each chunk of an answer its time, and an answer its length (TapOptions.TrueLength).
//
// A request whose body was not kept keeps its digest, for nobody can take another. Of o count MaxBody, SecretNames and
// TrueLength, which are those of the recorder; nil works. Errors: the store's, and the classifier's.
func Again(r *tape.Record, store cas.Store, c Classifier, s *scrub.Scrubber, o *TapOptions) error {
	restoreHeaders(r)
	was := tape.ExchangeOf(r.Kind)
	w, err := tape.NewWriter(io.Discard, &tape.Header{Argv: []string{}})
	if err != nil {
		return err
	}
	var opts TapOptions
	if o != nil {
		opts = TapOptions{MaxBody: o.MaxBody, TrueLength: o.TrueLength}
	}
	// Nobody reads the tape of this Tap. Its recorder counts ordinals from 1.
	rep, err := newRepeat(was, store, NewTap(tape.NewRecorder(w, &tape.RecorderOptions{Store: store}), c, s, &opts))
	if err != nil {
		return err
	}
	x := &rep.exchange
	x.Arrival, x.Lane, x.Stream = was.Arrival, rep.lane(), rep.stream()
	if was.Response == nil {
		x.Response = nil
	}
	extra := *tape.Extras(r.Kind)
	all := slices.Clone(extra)
	for _, now := range rep.extra {
		if tape.FieldValue(all, now.Name) == nil { // else what was recorded has its own
			all = append(all, now)
		}
	}
	rep.extra, rep.came = all, 0
	if call, ok := r.Kind.(*tape.LLMCall); ok {
		rep.connection, rep.opcode = call.Connection, call.Opcode
	}
	kind, raw := rep.kind()
	if tape.FieldValue(extra, "request_lost") != nil {
		x = tape.ExchangeOf(kind)
		x.RequestDigest = was.RequestDigest
		*was, *tape.Extras(r.Kind) = *x, rep.extra
	} else {
		r.Kind = kind
	}
	r.Raw = raw
	clearStrings(r, s)
	return nil
}

// clearStrings takes what s knows out of the strings of r that no Tap looks at.
func clearStrings(r *tape.Record, s *scrub.Scrubber) {
	for _, p := range tape.Strings(r.Kind) {
		*p = s.String(*p)
	}
	extra := *tape.Extras(r.Kind)
	for i := range extra {
		extra[i].Value, _ = s.Bytes(extra[i].Value)
	}
}

// A repeat is a recorded exchange that goes through a Tap of its own.
type repeat struct {
	*Open
	was   *tape.Exchange
	piece []int // of each piece of the answer that was given: the recorded chunk that it is of
}

func newRepeat(was *tape.Exchange, store cas.Store, tap *Tap) (*repeat, error) {
	var body []byte
	var err error
	if was.RequestPayload != nil {
		if body, err = was.RequestPayload.Bytes(store); err != nil {
			return nil, err
		}
	}
	o, err := tap.Begin(&Request{Method: was.Method, URL: was.URL, Header: HeaderOf(was.RequestHeaders), Body: body})
	if err != nil {
		return nil, err
	}
	r := &repeat{Open: o, was: was}
	if was.Status != 0 {
		if err := r.answer(store); err != nil {
			return nil, errors.Join(err, o.End(""))
		}
	}
	return r, errors.Join(o.End(was.Error), o.lost)
}

// answer gives the recorded answer chunk by chunk, what no chunk names as a further one.
func (r *repeat) answer(store cas.Store) error {
	if err := r.Response(r.was.Status, HeaderOf(r.was.ResponseHeaders)); err != nil || r.was.Response == nil {
		return err
	}
	body, err := r.was.Response.Open(store)
	if err != nil {
		return err
	}
	defer body.Close()
	buf := make([]byte, min(maxPiece, r.was.Response.Len))
	for i, c := range r.was.Stream {
		if err := r.chunk(i, io.LimitReader(body, c.Length), buf); err != nil {
			return err
		}
	}
	return r.chunk(len(r.was.Stream), body, buf)
}

// chunk gives the recorded chunk i in pieces.
func (r *repeat) chunk(i int, from io.Reader, buf []byte) error {
	for {
		n, err := io.ReadFull(from, buf)
		if n > 0 {
			r.piece = append(r.piece, i)
			if err := r.Chunk(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case len(buf) == 0, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// stream returns the chunks of the stored answer with the times of the recorded ones: the ordinal of each, but for that of
// the request before it, is the number of the piece that it was, from 1. Where none were recorded there are none.
func (r *repeat) stream() []tape.Chunk {
	if len(r.was.Stream) == 0 {
		return nil
	}
	var out []tape.Chunk
	last := -1
	for _, c := range r.exchange.Stream {
		i := min(r.piece[c.G-1-r.came], len(r.was.Stream)-1)
		if i == last {
			out[len(out)-1].Length += c.Length
			continue
		}
		last = i
		c.TMS, c.G = r.was.Stream[i].TMS, r.was.Stream[i].G
		out = append(out, c)
	}
	return out
}

// lane is the recorded lane, with the opening that its conversation has now.
func (r *repeat) lane() string {
	opening, number, ok := strings.Cut(r.was.Lane, "#")
	if r.key.Kind != LLM || !strings.HasPrefix(opening, "llm:") {
		return r.was.Lane
	}
	if opening = lanePrefix(r.Identity().Talk().Opening); ok {
		opening += "#" + number
	}
	return opening
}

// ofAnswer are the further keys of a record that say something of its answer.
var ofAnswer = []string{"response_decoded", trueLength, bare.KeyTrailers, bare.KeyProto}

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
	if found, err := s.body(x.RequestPayload, x.RequestHeaders, false); found || err != nil {
		return found, err
	}
	return s.body(x.Response, x.ResponseHeaders, x.Error != "")
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

// body looks at a body whose headers say how it is encoded, and at what it decodes to; one that does not decode is looked at as it is.
func (s *Search) body(p *tape.Payload, headers []tape.HeaderField, cut bool) (bool, error) {
	encoding := fieldValue(headers, "Content-Encoding")
	switch {
	case p == nil:
		return false, nil
	case !encoded(encoding):
		return s.Payload(p)
	}
	found, err := s.once(p, reading{encoding: encoding, cut: cut}, func() (bool, error) {
		b, err := p.Bytes(s.store)
		if err != nil || len(b) == 0 {
			return false, err
		}
		answer := &packedBody{scrubber: s.find, encoding: encoding, limit: DefaultMaxBody, raw: b}
		answer.at.add(tape.Chunk{}, len(b))
		return answer.scan(cut)
	})
	if err != nil {
		return s.Payload(p)
	}
	return found, nil
}
