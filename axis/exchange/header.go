package exchange

import (
	"net/http"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// headerFields returns a header scrubbed, sorted by name: the order and the letter case of header lines are not kept.
// Those in without are left out; their names must be canonical.
func headerFields(s *scrub.Scrubber, h http.Header, without ...string) []tape.HeaderField {
	names := make([]string, 0, len(h))
	for name := range h {
		if !slices.Contains(without, http.CanonicalHeaderKey(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	fields := make([]tape.HeaderField, 0, len(names))
	for _, name := range names {
		for _, value := range h[name] {
			fields = append(fields, tape.HeaderField{Name: name, Value: s.Header(name, value)})
		}
	}
	return fields
}

// headerOf is the header that fields were made of.
func headerOf(fields []tape.HeaderField) http.Header {
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}

// field returns a string field that is added to a record.
func field(name, value string) tape.Field {
	return tape.Field{Name: name, Value: quote(value)}
}
