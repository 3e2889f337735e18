package bodies

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
	"unicode/utf8"
)

// maxFields bounds, in bytes, a form, multipart body or event stream that is compared by its fields.
const maxFields = 16 << 20

// asFields writes two bodies of one known form as JSON, whose paths then name the fields, parts or events. It is not ok
// for any other body.
func asFields(a, b string) (ja, jb string, ok bool) {
	if len(a) > maxFields || len(b) > maxFields {
		return "", "", false
	}
	for _, read := range []func(string) (any, bool){readEvents, readParts, readForm} {
		va, okA := read(a)
		if !okA {
			continue
		}
		vb, okB := read(b)
		if !okB {
			continue
		}
		ja, errA := json.Marshal(va)
		jb, errB := json.Marshal(vb)
		if errA == nil && errB == nil {
			return string(ja), string(jb), true
		}
	}
	return "", "", false
}

// readForm reads application/x-www-form-urlencoded: fields in one line.
func readForm(s string) (any, bool) {
	if !strings.Contains(s, "=") || strings.ContainsAny(s, " \n\"{}<>") {
		return nil, false
	}
	values, err := url.ParseQuery(s)
	if err != nil {
		return nil, false
	}
	fields := make(map[string]any, len(values))
	for name, vs := range values {
		if !utf8.ValidString(name + strings.Join(vs, "")) {
			return nil, false
		}
		fields[name] = vs
		if len(vs) == 1 {
			fields[name] = vs[0]
		}
	}
	return map[string]any{"form": fields}, true
}

// InParts reports whether two bodies are of parts, which Diff compares by what they hold.
func InParts(a, b []byte) bool {
	_, okA := readParts(string(a[:min(len(a), maxFields)]))
	_, okB := readParts(string(b[:min(len(b), maxFields)]))
	return okA && okB
}

// readParts reads a multipart body, which begins with its boundary.
func readParts(s string) (any, bool) {
	line, _, ok := strings.Cut(s, "\r\n")
	boundary, dashed := strings.CutPrefix(line, "--")
	if !ok || !dashed || boundary == "" || len(boundary) > 70 {
		return nil, false
	}
	r := multipart.NewReader(strings.NewReader(s), boundary)
	parts := make(map[string]any)
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return map[string]any{"parts": parts}, true
		}
		if err != nil {
			return nil, false
		}
		content, err := io.ReadAll(p)
		if err != nil {
			return nil, false
		}
		name := p.FormName()
		for n := 2; parts[name] != nil; n++ {
			name = fmt.Sprintf("%s#%d", p.FormName(), n)
		}
		parts[name] = partOf(p.Header.Get("Content-Disposition"), p.Header.Get("Content-Type"), content)
	}
}

func partOf(disposition, contentType string, content []byte) any {
	part := map[string]any{"content": fieldOf(content)}
	if _, params, err := mime.ParseMediaType(disposition); err == nil && params["filename"] != "" {
		part["filename"] = params["filename"] // all of it: multipart.Part.FileName keeps its last element alone
	}
	if t, _, err := mime.ParseMediaType(contentType); err == nil {
		part["content_type"] = t
	}
	return part
}

// fieldOf is a field's bytes as JSON: as they stand where they are JSON, as text, or what tells two runs of bytes apart.
func fieldOf(b []byte) any {
	switch {
	case json.Valid(b):
		return json.RawMessage(b)
	case utf8.Valid(b):
		return string(b)
	}
	return fmt.Sprintf("%d bytes: % x", len(b), b)
}

// readEvents reads a text/event-stream.
func readEvents(s string) (any, bool) {
	if !strings.HasPrefix(s, "data:") && !strings.HasPrefix(s, "event:") && !strings.HasPrefix(s, ":") || !utf8.ValidString(s) {
		return nil, false
	}
	var events []any
	for block := range strings.SplitSeq(strings.ReplaceAll(s, "\r\n", "\n"), "\n\n") {
		fields := make(map[string]any)
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			value = strings.TrimPrefix(value, " ")
			if before, ok := fields[name].(string); ok {
				value = before + "\n" + value
			}
			fields[name] = value
		}
		if data, ok := fields["data"].(string); ok {
			fields["data"] = fieldOf([]byte(data))
		}
		if len(fields) > 0 {
			events = append(events, fields)
		}
	}
	return map[string]any{"events": events}, len(events) > 0
}
