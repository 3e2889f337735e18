package bare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ProtoField says in which protocol an answer came that did not come in HTTP/1.1.
func ProtoField(proto string) tape.Field { return TextField(KeyProto, proto) }

// TrailersField says the trailers of an answer, scrubbed and sorted by name.
func TrailersField(s *scrub.Scrubber, h http.Header) tape.Field {
	fields := [][2]string{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			text, _ := tape.SafeString(s.Header(name, value))
			fields = append(fields, [2]string{name, text})
		}
	}
	return tape.Field{Name: KeyTrailers, Value: asJSON(fields)}
}

// TextField is a further key of a record, with a text.
func TextField(name, text string) tape.Field { return tape.Field{Name: name, Value: asJSON(text)} }

// asJSON returns v, made of strings and slices, with < > and & as they are.
func asJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("bare: %T has no JSON form: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
