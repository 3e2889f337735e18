package llm

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// maxField is the length in bytes of the longest field of a form that stands in the surface as it is, so that a
// difference can be shown; longer ones and files stand there by their digest.
const maxField = 4096

// A part is one part of a multipart body.
type part struct {
	name, file, kind string // of Content-Disposition and Content-Type; "" for none
	content          []byte
	digest           bool // the content is a digest
}

// readParts reads a multipart body; false where the header does not announce one or the body is none. The boundary, which
// is made up for each request, is not kept.
func readParts(contentType string, body []byte) ([]part, bool) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return nil, false
	}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var parts []part
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false
		}
		content, err := io.ReadAll(p)
		if err != nil {
			return nil, false
		}
		parts = append(parts, part{p.FormName(), fileName(p), p.Header.Get("Content-Type"), content, false})
	}
	// Fields of different names have no order among themselves; those of one name have.
	slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return parts, len(parts) > 0
}

// fileName returns the name of the file that a part is, all of it: multipart.Part.FileName keeps its last element alone.
func fileName(p *multipart.Part) string {
	_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	if err != nil {
		return p.FileName()
	}
	return params["filename"]
}

// compare makes of the content what is compared: a short field as it stands, for it is masked with the whole, else the
// digest of what mask makes of it.
func (p *part) compare(mask func([]byte) []byte) {
	if p.file == "" && len(p.content) <= maxField && utf8.Valid(p.content) {
		return
	}
	content := p.content
	if utf8.Valid(content) {
		content = mask(content)
	}
	p.content, p.digest = []byte(cas.Sum(content).String()), true
}

// value returns the part as it stands in a surface.
func (p *part) value() canonjson.Value {
	key := "text"
	if p.digest {
		key = "digest"
	}
	v := object(field(key, text(string(p.content))))
	for _, m := range []struct{ key, value string }{{"name", p.name}, {"filename", p.file}, {"type", p.kind}} {
		if m.value != "" {
			put(&v, m.key, text(m.value))
		}
	}
	return v
}

// partsValue returns a multipart body as it compares.
func partsValue(parts []part) canonjson.Value {
	list := array()
	for i := range parts {
		list.Elems = append(list.Elems, parts[i].value())
	}
	return object(field("multipart", list))
}

// formCall reads a form of fields, each one a key of the body, into a call. One without a model is not of its shape, but
// where the path names it.
func formCall(parts []part, k *keys) (call, bool) {
	body := object()
	for i := range parts {
		p := &parts[i]
		if field := get(&body, p.name); field != nil {
			if field.Kind != canonjson.Array {
				*field = array(*field)
			}
			field.Elems = append(field.Elems, p.value())
			continue
		}
		value := p.value()
		if p.name == modelKey && !p.digest {
			value = text(string(p.content))
		}
		put(&body, p.name, value)
	}
	c := call{model: member(&body, modelKey)}
	c.surface, c.params = k.split(&body, modelKey)
	return c, len(c.surface) > 0
}
