package runview

import (
	"bytes"
	"encoding/json"
	"strings"
)

const (
	keptText   = 2 << 10 // bytes of one text that a Run keeps for its picture
	keptFields = 24      // of the parameters or the output of one turn
)

// A Field is a named part of what a tool was given or gave, or all of it where that is no object: Name is "" then.
type Field struct {
	Name string
	Text string // a string as it is, any other value as JSON
	Len  int    // bytes of the whole text
}

// fieldsOf takes a value apart. Of each text max bytes are kept, and keptFields fields; 0 keeps all.
func fieldsOf(value json.RawMessage, max int) []Field {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	if value[0] != '{' {
		return []Field{field("", value, max)}
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	if _, err := dec.Token(); err != nil {
		return []Field{field("", value, max)}
	}
	var out []Field
	for dec.More() {
		name, err := dec.Token()
		var v json.RawMessage
		if err == nil {
			err = dec.Decode(&v)
		}
		if err != nil { // a record's values are JSON: this is none
			return []Field{field("", value, max)}
		}
		if max > 0 && len(out) == keptFields {
			out = append(out, Field{Name: ellipsis})
			break
		}
		text, _ := name.(string)
		out = append(out, field(text, v, max))
	}
	return out
}

func field(name string, value json.RawMessage, max int) Field {
	text := textOf(value)
	f := Field{Name: name, Text: text, Len: len(text)}
	if max > 0 {
		f.Name, f.Text = strings.Clone(clip(name, max)), strings.Clone(clip(text, max))
	}
	return f
}

// textOf is a string as it is, and any other value as JSON without spaces.
func textOf(value json.RawMessage) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// inline is all of fields on one line: name=text, as far as max bytes.
func inline(fields []Field, max int) string {
	var b strings.Builder
	for _, f := range fields {
		if b.Len() > max {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if f.Name != "" {
			b.WriteString(f.Name)
			b.WriteByte('=')
		}
		b.WriteString(clip(strings.TrimSpace(f.Text), max))
	}
	return b.String()
}
