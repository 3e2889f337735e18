package tapeview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A member is a key of a JSON object and its value, in the order in which they stand.
type member struct {
	name  string
	value json.RawMessage
}

// members takes an object apart; nil where b is none.
func members(b []byte) []member {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		m := member{name: name}
		if err != nil || !ok || dec.Decode(&m.value) != nil {
			return nil
		}
		out = append(out, m)
	}
	return out
}

// Fields writes the fields of a record for a person, one a line, headers as they stand in HTTP. Of chunks and payloads it
// says how much there is: the bytes follow, each once.
func Fields(out io.Writer, rec *tape.Record) error {
	var b strings.Builder
	for _, m := range members(tape.AppendRecord(nil, rec)) {
		switch m.name {
		case "type":
		case "kind":
			for _, f := range members(m.value) {
				writeField(&b, f, rec.Kind)
			}
		default:
			writeField(&b, m, nil)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeField writes one field of a record, or of its kind k.
func writeField(b *strings.Builder, m member, k tape.Kind) {
	x := tape.ExchangeOf(k)
	switch {
	case x != nil && m.name == "request_headers":
		writeHeaders(b, m.name, x.RequestHeaders)
	case x != nil && m.name == "response_headers":
		writeHeaders(b, m.name, x.ResponseHeaders)
	case x != nil && m.name == "stream":
		visible.Fprintf(b, "stream: %s\n", chunksOf(x.Stream))
	default:
		visible.Fprintf(b, "%s: %s\n", m.name, valueOf(m.value))
	}
}

func writeHeaders(b *strings.Builder, name string, list []tape.HeaderField) {
	visible.Fprintf(b, "%s:\n", name)
	for _, h := range list {
		visible.Fprintf(b, "  %s: %s\n", h.Name, h.Value)
	}
}

func chunksOf(list []tape.Chunk) string {
	s := plural(len(list), "chunk", "chunks")
	if len(list) > 0 {
		s += fmt.Sprintf(", from %s to %s after the request", Seconds(list[0].TMS), Seconds(list[len(list)-1].TMS))
	}
	return s
}

// valueOf is a JSON value for a person: a string without its quotes, a payload by its hash and without its text.
func valueOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	parts := members(raw)
	for _, m := range parts {
		if m.name != "content_hash" {
			continue
		}
		var said []string
		for _, p := range parts {
			if p.name != "text" {
				said = append(said, p.name+" "+valueOf(p.value))
			}
		}
		return strings.Join(said, ", ")
	}
	return string(raw)
}

// Text is b as whole lines when it is text. For a terminal what would steer it is escaped; who reads a file or a pipe
// gets the bytes.
func Text(b []byte, terminal bool) string {
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "(binary)\n"
	}
	text := string(b)
	if terminal {
		text = visible.Text(text)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// Indented is JSON with a value a line, and any other bytes as they are shown.
func Indented(b []byte, terminal bool) string {
	var buf bytes.Buffer
	if json.Indent(&buf, bytes.TrimSpace(b), "", "  ") != nil || buf.Len() == 0 {
		return Text(b, terminal)
	}
	buf.WriteByte('\n')
	return visible.JSON(buf.String())
}

// Size is a number of bytes for people.
func Size(n int64) string {
	switch {
	case n < 10_000:
		return plural(int(n), "byte", "bytes")
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// Seconds is a number of milliseconds for people.
func Seconds(ms int64) string { return fmt.Sprintf("%d.%03ds", ms/1000, ms%1000) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
