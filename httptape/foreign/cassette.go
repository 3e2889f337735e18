package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// read reads the file item by item.
func (m *maker) read(src *source) error {
	head := make([]byte, headSize)
	k, err := io.ReadFull(src, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return src.wrong("", err)
	}
	var where string
	r := io.MultiReader(bytes.NewReader(head[:k]), src)
	if m.of.within != "" || isJSON(head[:k]) {
		where, err = m.readJSON(src, r)
	} else {
		where, err = m.readYAML(src, r)
	}
	if err == nil && !m.found {
		err = fmt.Errorf("%w: it has no list %s", ErrFormat, strings.Join(m.of.lists, " or "))
	}
	if err != nil {
		return src.wrong(where, err)
	}
	return nil
}

// member takes what stands beside the list, and knows by its key that there is one.
func (m *maker) member(key string, v *node) {
	m.found = m.found || slices.Contains(m.of.lists, key)
	if s := m.of.version(key, v); s != "" {
		m.version(s)
	}
}

// item takes one item of the list.
func (m *maker) item(v *node, where string) error {
	m.found = true
	x := &message{Where: where}
	if v.kind != mapNode || v.at("request").kind != mapNode || v.at("response").kind != mapNode {
		m.skip(where, "it has no request or no answer")
		return nil
	}
	if err := m.of.message(m, v, x); err != nil {
		return err
	}
	return m.put(x)
}

// isJSON reports whether a file that begins with head is a JSON object.
func isJSON(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n"), []byte("{"))
}

// readJSON reads a file of JSON. where is where it is wrong.
func (m *maker) readJSON(src *source, r io.Reader) (where string, err error) {
	f, n := newJSONFile(r), 0
	one := func() string { return fmt.Sprintf("%s %d", m.of.unit, n) }
	item := func(raw []byte) error {
		n++
		v, err := jsonNode(raw)
		if err == nil {
			err = m.item(v, one())
		}
		if err != nil {
			return src.wrong(one(), err)
		}
		return nil
	}
	member := func(key string) error {
		if slices.Contains(m.of.lists, key) && f.s.Peek() == '[' {
			m.member(key, nothing)
			return f.list(item)
		}
		raw, err := f.value()
		if err != nil {
			return err
		}
		v, err := jsonNode(raw)
		if err == nil {
			m.member(key, v)
		}
		return err
	}
	err = f.object(func(key string) error {
		switch m.of.within {
		case "":
			return member(key)
		case key:
			return f.object(member)
		}
		return f.skip()
	})
	if err == nil {
		err = f.end()
	}
	if where = f.where(err); n > 0 {
		where = strings.TrimSuffix("after "+one()+", "+where, ", ")
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
	encoding := x.Answer.Get("Content-Encoding")
	if encoding == "" || len(x.Content) == 0 {
		return
	}
	if _, err := exchange.Decode(encoding, x.Content, MaxItem); err == nil || errors.Is(err, exchange.ErrTooLarge) {
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

// A source is a foreign file that is read once.
type source struct {
	ctx      context.Context
	path     string
	f        *os.File
	done     int64
	total    int64
	told     int64
	progress func(done, total int64)
}

// progressStep is after how many bytes Progress is told again.
const progressStep = 1 << 20

func openSource(ctx context.Context, path string, progress func(done, total int64)) (*source, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &source{ctx: ctx, path: path, f: f, total: st.Size(), progress: progress}, nil
}

func (s *source) close() error { return s.f.Close() }

// Read implements io.Reader. It ends with the context.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.f.Read(p)
	s.done += int64(n)
	if s.progress != nil && (s.done-s.told >= progressStep || err == io.EOF) {
		s.told = s.done
		s.progress(s.done, max(s.total, s.done))
	}
	return n, err
}

// wrong is the error for something at a place of the file; one that names its place already stays.
func (s *source) wrong(where string, err error) error {
	if ctx := s.ctx.Err(); ctx != nil {
		return ctx
	}
	if read, ok := errors.AsType[*ReadError](err); ok {
		return read
	}
	return &ReadError{Path: s.path, Where: where, Err: err}
}
