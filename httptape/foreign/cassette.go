package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// read reads the file at path and takes the items of its list.
func (m *maker) read(path string) error {
	err := m.items(path)
	if read, ok := errors.AsType[*ReadError](err); ok {
		read.Path = path
	}
	return err
}

func (m *maker) items(path string) error {
	text, err := readFile(path)
	if err != nil {
		return err
	}
	parse := parseYAML
	if m.of.within != "" || isJSON(text) {
		parse = parseJSON
	}
	top, err := parse(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return err
	}
	if m.of.within != "" {
		top = top.at(m.of.within)
	}
	if top.kind == listNode {
		return &ReadError{Where: top.where("list", 1), Err: errOldCassette}
	}
	found := false
	for i, key := range top.keys {
		if s := m.of.version(key, top.items[i]); s != "" {
			m.version(s)
		}
		if slices.Contains(m.of.lists, key) {
			found = true
			if err := m.list(key, top.items[i]); err != nil {
				return err
			}
		}
	}
	if !found {
		return &ReadError{Err: fmt.Errorf("%w: it has no list %s", ErrFormat, strings.Join(m.of.lists, " or "))}
	}
	return nil
}

// readFile returns what is in a file that is not too long.
func readFile(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(text) > MaxFile {
		err = fmt.Errorf("it has more than %d bytes, the limit", MaxFile)
	}
	if err != nil {
		return nil, &ReadError{Err: err}
	}
	return text, nil
}

// list takes the items of a list. An error says which it is about.
func (m *maker) list(key string, list *node) error {
	if list.kind != listNode && list.kind != nullNode {
		return &ReadError{Where: list.where("list", 1), Err: errors.New(key + " is no list of items")}
	}
	for i, v := range list.items {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		where := v.where(m.of.unit, i+1)
		if err := m.item(v, where); err != nil {
			return &ReadError{Where: where, Err: err}
		}
	}
	return nil
}

// item takes one item of the list.
func (m *maker) item(v *node, where string) error {
	x := &message{Where: where}
	if v.kind != mapNode || v.at("request").kind != mapNode || v.at("response").kind != mapNode {
		m.skip(where, "it has no request or no answer")
		return nil
	}
	if err := m.of.message(m, v, x); err != nil {
		return err
	}
	m.put(x)
	return nil
}

// isJSON reports whether a file that begins with head is a JSON object.
func isJSON(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n"), []byte("{"))
}

// headersOf reads a mapping of names to a value or a list of them.
func headersOf(n *node) http.Header {
	h := make(http.Header)
	for i, name := range n.keys {
		addValues(h, name, n.items[i])
	}
	return h
}

func addValues(h http.Header, name string, v *node) {
	switch v.kind {
	case scalarNode:
		h.Add(name, v.string())
	case listNode:
		for _, one := range v.items {
			addValues(h, name, one)
		}
	}
}

// fitEncoding takes a Content-Encoding off an answer whose body is not encoded: a hook or an option of the recorder took that
// off and left the header.
func (m *maker) fitEncoding(x *message) {
	encoding := x.Answer.Get("Content-Encoding")
	if encoding == "" || len(x.Content) == 0 {
		return
	}
	if _, err := exchange.Decode(encoding, x.Content, MaxFile); err == nil || errors.Is(err, exchange.ErrTooLarge) {
		return
	}
	if !utf8.Valid(x.Content) {
		return // nobody can say what it is: the tape will tell that it cannot be looked into
	}
	x.Answer.Del("Content-Encoding")
	x.Answer.Del("Content-Length")
	m.note("answers that say Content-Encoding stood there decoded: the header is left out of them")
}

// version adds to what is known of the producer.
func (m *maker) version(s string) {
	if m.report.Version != "" {
		s = m.report.Version + ", " + s
	}
	m.report.Version = s
}
