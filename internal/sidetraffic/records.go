package sidetraffic

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxBody bounds, in bytes, a body that is looked into.
const maxBody = 16 << 20

// A record is one thing that is reported: JSON, or a protobuf message.
type record struct {
	value   any
	message []byte
}

// recordsOf returns the records that a body is a list of; none where it is no such list.
func recordsOf(body []byte) []record {
	if len(body) == 0 || len(body) > maxBody {
		return nil
	}
	values, err := jsonValues(body)
	switch {
	case err != nil:
		return messages(body)
	case len(values) == 1:
		return listIn(values[0])
	}
	return objects(values)
}

// jsonValues reads the JSON values that a body consists of.
func jsonValues(body []byte) (values []any, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	for {
		var v any
		if err = d.Decode(&v); errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
}

// listIn returns the list that a value is, or the longest that a member of it is.
func listIn(v any) []record {
	switch v := v.(type) {
	case []any:
		return objects(v)
	case map[string]any:
		var longest []record
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if list, ok := v[key].([]any); ok && len(list) > len(longest) {
				if all := objects(list); all != nil {
					longest = all
				}
			}
		}
		return longest
	}
	return nil
}

// objects returns values as records; none where one of them is no object.
func objects(values []any) []record {
	all := make([]record, 0, len(values))
	for _, v := range values {
		if _, ok := v.(map[string]any); !ok {
			return nil
		}
		all = append(all, record{value: v})
	}
	return all
}

// messages returns the records of a protobuf message all of whose fields are messages, as those of OTLP are.
func messages(body []byte) (all []record) {
	const lengthDelimited = 2
	for len(body) > 0 {
		tag, n := binary.Uvarint(body)
		if n <= 0 || tag&7 != lengthDelimited || tag>>3 == 0 {
			return nil
		}
		size, m := binary.Uvarint(body[n:])
		if m <= 0 || size > uint64(len(body)-n-m) {
			return nil
		}
		all = append(all, record{message: body[n+m : n+m+int(size)]})
		body = body[n+m+int(size):]
	}
	return all
}

// within reports whether the record holds a time of the run.
func (r record) within(run *Span) bool {
	if r.value != nil {
		return anywhere(r.value, isTimeOf(run))
	}
	for i := 0; i+8 <= len(r.message); i++ { // fixed64, in ns, as all of OTLP
		if run.holds(float64(binary.LittleEndian.Uint64(r.message[i:])) / 1e6) {
			return true
		}
	}
	return false
}

// anywhere reports whether something is true of a value, or of one in it that is neither an object nor a list.
func anywhere(v any, is func(v any) bool) bool {
	inside := func(v any) bool { return anywhere(v, is) }
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), inside)
	case []any:
		return slices.ContainsFunc(v, inside)
	}
	return is(v)
}

// isTimeOf says of which values a time of the run is told.
func isTimeOf(run *Span) func(v any) bool {
	return func(v any) bool {
		switch v := v.(type) {
		case json.Number:
			return isTime(v.String(), run)
		case string:
			if t, err := time.Parse(time.RFC3339, v); err == nil {
				return run.holds(float64(t.UnixMilli()))
			}
			return isTime(v, run)
		}
		return false
	}
}

// isTime reports whether a number is a time of the run in s, ms, us or ns.
func isTime(number string, run *Span) bool {
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && slices.ContainsFunc([]float64{1e3, 1, 1e-3, 1e-6}, func(unit float64) bool { return run.holds(f * unit) })
}

// tellsNothing reports whether a short answer holds numbers and plain words alone: anything else may be needed later.
func tellsNothing(answer []byte) bool {
	values, err := jsonValues(answer)
	if err != nil {
		return !tells(string(answer))
	}
	return !slices.ContainsFunc(values, func(v any) bool { return anywhere(v, tells) })
}

// tells reports whether a value is a text that may be needed later.
func tells(v any) bool {
	text, ok := v.(string)
	return ok && (len(text) > 32 || strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsSpace(r) && !strings.ContainsRune("_-.,!'", r)
	}))
}
