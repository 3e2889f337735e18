package exchange

import (
	"encoding/json"
	"maps"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxTrailers bounds how many trailers of a recorded answer are given.
const maxTrailers = 10_000

// Trailers takes the fields that came behind the body of the answer, before End; none for an answer that had none.
func (o *Open) Trailers(h http.Header) {
	came := h.Clone()
	maps.DeleteFunc(came, func(_ string, values []string) bool { return len(values) == 0 }) // announced, and not sent
	if h = came; len(h) == 0 || o.tap.rec == nil {
		return
	}
	o.tap.scrubber.LearnHeader(h)
	o.extra = append(o.extra, bare.TrailersField(o.tap.scrubber, h))
}

// Proto says in which protocol the answer came, before End. HTTP/1.1 need not be said.
func (o *Open) Proto(proto string) {
	if proto != "" && proto != "HTTP/1.1" && o.tap.rec != nil {
		o.extra = append(o.extra, bare.ProtoField(proto))
	}
}

// trailersOf are the trailers that the further keys of a record tell; nil for none.
func trailersOf(extra []tape.Field) http.Header {
	var fields [][2]string
	raw := tape.FieldValue(extra, bare.KeyTrailers)
	if raw == nil || json.Unmarshal(raw, &fields) != nil || len(fields) == 0 || len(fields) > maxTrailers {
		return nil
	}
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(f[0], f[1])
	}
	return h
}
