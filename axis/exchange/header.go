package exchange

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// headerFields returns a header scrubbed, sorted by name: the order and the letter case of header lines are not kept.
func headerFields(s *scrub.Scrubber, h http.Header) []tape.HeaderField {
	s.LearnHeader(h) // a header that comes first may hold what a later one names as a secret
	return learnedFields(s, h)
}

// learnedFields is headerFields of a header that s has learned from already.
func learnedFields(s *scrub.Scrubber, h http.Header) []tape.HeaderField {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
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

// areFields reports whether h is what fields say, which are sorted by name: others never are.
func areFields(h http.Header, fields []tape.HeaderField) bool {
	n, at := 0, 0 // of the values of h that were compared; of those of the field's name
	for i, f := range fields {
		if at++; i == 0 || f.Name > fields[i-1].Name {
			at = 0
		} else if f.Name < fields[i-1].Name {
			return false
		}
		if values := h[f.Name]; at >= len(values) || values[at] != f.Value {
			return false
		}
		n++
	}
	for _, values := range h {
		n -= len(values)
	}
	return n == 0
}

// fieldValue returns the value of the first field called name, "" for none.
func fieldValue(fields []tape.HeaderField, name string) string {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// The keys of the true bytes of header values in a record.
const (
	rawRequest  = "request_headers"
	rawResponse = "response_headers"
)

// safeFields returns fields as a tape can hold them, and adds the true bytes of each value that is not UTF-8 to raw, under
// key and the index of the field.
func safeFields(key string, fields []tape.HeaderField, raw []tape.RawBytes) ([]tape.HeaderField, []tape.RawBytes) {
	shared := true // with the caller
	for i := range fields {
		text, bytes := tape.SafeString(fields[i].Value)
		if bytes != nil {
			if shared {
				fields, shared = slices.Clone(fields), false
			}
			fields[i].Value = text
			raw = append(raw, tape.RawBytes{Key: key + "." + strconv.Itoa(i), Bytes: bytes})
		}
	}
	return fields, raw
}

// restoreFields undoes safeFields.
func restoreFields(key string, fields []tape.HeaderField, raw []tape.RawBytes) {
	for _, r := range raw {
		index, ok := strings.CutPrefix(r.Key, key+".")
		if i, err := strconv.Atoi(index); ok && err == nil && i >= 0 && i < len(fields) {
			fields[i].Value = string(r.Bytes)
		}
	}
}

// field returns a string field that is added to a record.
func field(name, value string) tape.Field {
	return tape.Field{Name: name, Value: quote(value)}
}
