package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// A cassetteForm is what is particular to one family of cassettes.
type cassetteForm struct {
	lists   []string // the keys of the list of items
	version func(key string, v *node) string
	item    func(m *maker, n *node, x *message) error
}

// read reads a cassette, YAML or JSON, item by item.
func (c *cassetteForm) read(m *maker, src *source) error {
	lists := make(map[string]bool)
	for _, l := range c.lists {
		lists[l] = true
	}
	found := false
	top := func(key string, v *node) {
		found = found || lists[key]
		if s := c.version(key, v); s != "" {
			m.version(s)
		}
	}
	n := 0
	item := func(v *node, where string) error {
		n++
		found = true
		x := &message{where: where}
		if v.kind != mapNode || v.at("request").kind != mapNode || v.at("response").kind != mapNode {
			m.skip(where, "it has no request or no answer")
			return nil
		}
		if err := c.item(m, v, x); err != nil {
			return err
		}
		m.fitEncoding(x)
		return m.put(x)
	}
	head := make([]byte, headSize)
	k, err := io.ReadFull(src, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return src.wrong("", err)
	}
	r := io.MultiReader(bytes.NewReader(head[:k]), src)
	var where string
	if isJSON(head[:k]) {
		where, err = readJSONCassette(r, lists, top, item)
	} else {
		where, err = newYAMLFile(r).read(lists, top, item)
	}
	if err == nil && !found {
		err = fmt.Errorf("%w: it has no list %s", ErrFormat, strings.Join(c.lists, " or "))
	}
	if err != nil {
		return src.wrong(where, err)
	}
	return nil
}

// isJSON reports whether a file that begins with head is a JSON object.
func isJSON(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n"), []byte("{"))
}

// readJSONCassette is yamlFile.read for JSON. where is the number of the item that something is wrong with.
func readJSONCassette(r io.Reader, lists map[string]bool, top func(string, *node), item func(*node, string) error) (where string, err error) {
	f, n := newJSONFile(r), 0
	err = f.object(func(key string) error {
		if lists[key] && f.s.Peek() == '[' {
			top(key, nothing)
			err := f.list(func(raw []byte) error {
				n++
				where = fmt.Sprintf("item %d", n)
				v, err := jsonNode(raw)
				if err != nil {
					return err
				}
				return item(v, where)
			})
			if err == nil {
				where = ""
			}
			return err
		}
		raw, err := f.value()
		if err != nil {
			return err
		}
		v, err := jsonNode(raw)
		if err == nil {
			top(key, v)
		}
		return err
	})
	if err == nil {
		err = f.end()
	}
	if err != nil && where == "" {
		where = f.where(err)
	}
	return where, err
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
	encoding := x.answer.Get("Content-Encoding")
	if encoding == "" || len(x.content) == 0 {
		return
	}
	if _, err := exchange.Decode(encoding, x.content, MaxItem); err == nil || errors.Is(err, exchange.ErrTooLarge) {
		return
	}
	if !utf8.Valid(x.content) {
		return // nobody can say what it is: the tape will tell that it cannot be looked into
	}
	x.answer.Del("Content-Encoding")
	x.answer.Del("Content-Length")
	m.note("answers that say Content-Encoding stood there decoded: the header is left out of them")
}

// version adds to what is known of the producer.
func (m *maker) version(s string) {
	if m.report.Version != "" {
		s = m.report.Version + ", " + s
	}
	m.report.Version = s
}
