package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A maker makes one tape of the messages of one file.
type maker struct {
	ctx    context.Context
	of     *Importer
	opts   Options
	scrub  *scrub.Scrubber
	report Report
	all    []*message // of the file, in order
	total  int64      // bytes of their bodies

	// Of the second pass.
	tap     *exchange.Tap
	line    bytes.Buffer // the record of the message under way
	store   *cas.Memory  // its blobs, and those before
	nums    *bare.Numbers
	records []*tape.Record
	zero    time.Time // when the first request was sent
	ms      [2]int64  // when the message that is written ended: Unix epoch, and since zero
}

// make reads the file at path, and makes the tape out.
func (m *maker) make(path, out string) (_ *Report, err error) {
	if m.scrub = m.opts.Scrub; m.scrub == nil {
		m.scrub = bare.NewScrubber(&scrub.Options{Env: os.Environ()})
	}
	if err := checkOut(out); err != nil {
		return nil, err
	}
	if err := m.read(path); err != nil {
		return nil, err
	}
	early := func(a, b *message) int { return a.At.Compare(b.At) }
	if m.of.byTime && !slices.IsSortedFunc(m.all, early) {
		slices.SortStableFunc(m.all, early)
		m.note("the entries stood in another order than their times: the tape has the order of their times")
	}
	if err := m.write(); err != nil {
		return nil, err
	}
	if err := m.keep(out); err != nil {
		return nil, err
	}
	return &m.report, nil
}

func (m *maker) note(text string) {
	if !slices.Contains(m.report.Notes, text) {
		m.report.Notes = append(m.report.Notes, text)
	}
}

// skip counts what does not become a record.
func (m *maker) skip(where, why string) {
	for i := range m.report.Skipped {
		if s := &m.report.Skipped[i]; s.Why == why {
			s.Count++
			return
		}
	}
	m.report.Skipped = append(m.report.Skipped, Skip{Why: why, Count: 1, First: where})
}

// put takes a message: its secrets are learnt, and it waits for the second pass.
func (m *maker) put(x *message) {
	if x.Method == "" {
		x.Method = http.MethodGet
	}
	var err error
	if x.URL, err = tapeURL(x.URL); err != nil {
		m.skip(x.Where, err.Error())
		return
	}
	switch {
	case strings.EqualFold(x.Method, http.MethodConnect):
		m.skip(x.Where, "CONNECT opens a tunnel; what went through it stands by itself")
		return
	case x.Status == http.StatusSwitchingProtocols:
		m.skip(x.Where, errWebSocket.Error())
		return
	case x.Status > 0 && x.Status < http.StatusOK || x.Status > 999:
		m.skip(x.Where, "its status is that of no whole answer")
		return
	}
	x.Header, x.Answer = exchange.EndToEnd(x.Header), exchange.EndToEnd(x.Answer)
	x.Header.Del("Host") // stands in the URL
	x.Header.Del("Content-Length")
	if x.Status > 0 && len(x.Content) > 0 && !exchange.HasBody(x.Method, x.Status) {
		x.Content = nil
		m.note("answers that have no body for their status or method (304, HEAD) had one there: it is left out")
	}
	m.learn(x)
	m.all, m.total = append(m.all, x), m.total+x.size()
}

// write makes the records.
func (m *maker) write() error {
	masker, err := bare.NewMasker(nil)
	if err != nil {
		return err
	}
	w, err := tape.NewWriter(&m.line, &tape.Header{Argv: []string{}})
	if err != nil {
		return err
	}
	m.store = cas.NewMemory()
	now := func() (int64, int64) { return m.ms[0], m.ms[1] }
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: m.store, Now: now})
	m.tap = exchange.NewTap(rec, llm.NewClassifier(masker), m.scrub, &exchange.TapOptions{MaxBody: MaxFile})
	m.nums = bare.NewNumbers(nil)
	done := int64(0)
	for _, x := range m.all {
		if err := m.writeOne(x); err != nil {
			return err
		}
		if done += x.size(); m.opts.Progress != nil {
			m.opts.Progress(done, m.total)
		}
	}
	return nil
}

// writeOne writes the record of one message.
func (m *maker) writeOne(x *message) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	m.setTimes(x)
	r, err := m.recorded(x)
	if err != nil {
		return fmt.Errorf("%s: %w", x.Where, err)
	}
	m.settle(r, x)
	m.nums.Knows(m.scrub.Counts())
	if err := m.nums.Record(r, m.store); err != nil {
		return err
	}
	m.report.Exchanges++
	if _, ok := r.Kind.(*tape.LLMCall); ok {
		m.report.LLMCalls++
	}
	m.records = append(m.records, r)
	return nil
}

// setTimes says when a message ended. A file without times has none on its tape.
func (m *maker) setTimes(x *message) {
	m.ms = [2]int64{}
	if x.At.IsZero() {
		return
	}
	if m.zero.IsZero() {
		m.zero = x.At.Add(-time.Millisecond) // what began at 0 would have no times (package exchange)
	}
	end := x.At.Add(x.Took)
	m.ms = [2]int64{end.UnixMilli(), max(end.Sub(m.zero).Milliseconds(), 0)}
}

// recorded sends a message through the tap, as a recorder would have, and returns its record.
func (m *maker) recorded(x *message) (*tape.Record, error) {
	m.line.Reset()
	o, err := m.tap.Begin(&exchange.Request{Method: x.Method, URL: x.URL, Header: x.Header, Body: x.Body})
	if err != nil {
		return nil, err
	}
	if x.Status > 0 {
		if err := o.Response(x.Status, x.Answer); err != nil {
			return nil, err
		}
		if len(x.Content) > 0 {
			if err := o.Chunk(x.Content); err != nil {
				return nil, err
			}
		}
	}
	if err := o.End(x.Cut); err != nil {
		return nil, err
	}
	return tape.ParseRecord(m.line.Bytes())
}

// settle adds what the message says and no tap knows, and takes out what differs from one import to the next.
func (m *maker) settle(r *tape.Record, x *message) {
	ex, extra := tape.ExchangeOf(r.Kind), tape.Extras(r.Kind)
	r.G, ex.Arrival = 0, 0 // records stand in the order of arrival
	for i := range ex.Stream {
		ex.Stream[i].TMS, ex.Stream[i].G = x.Took.Milliseconds(), 0
	}
	if proto := protoOf(x.Proto); proto != "" && x.Status > 0 {
		*extra = append(*extra, bare.ProtoField(proto))
	}
	if len(x.Trailer) > 0 {
		*extra = append(*extra, bare.TrailersField(m.scrub, x.Trailer))
	}
	if x.Unsent != "" {
		*extra = append(*extra, bare.TextField("request_lost", x.Unsent))
	}
	if x.Lost != "" {
		ex.Response, ex.Stream, ex.Error = nil, nil, strings.TrimPrefix(ex.Error+"; "+x.Lost, "; ")
		*extra = append(*extra, bare.TextField("response_lost", x.Lost))
	}
}

// protoOf is a protocol as the tape has it, of the forms in which files name it; "" for HTTP/1.1 and for what is none.
func protoOf(said string) string {
	version := strings.TrimPrefix(strings.TrimPrefix(strings.ToUpper(said), "HTTP/"), "H")
	switch version {
	case "1.0", "1":
		return "HTTP/1.0"
	case "2", "2.0":
		return "HTTP/2.0"
	case "3", "3.0":
		return "HTTP/3.0"
	}
	return ""
}

// learn makes known what a message says of secrets, so that what stands before it in the file loses them too.
func (m *maker) learn(x *message) {
	s := m.scrub
	s.LearnHeader(x.Header)
	s.LearnURL(x.URL)
	m.learnBody(x.Header, x.Body, s.Named)
	s.LearnHeader(x.Answer)
	s.LearnHeader(x.Trailer)
	m.learnBody(x.Answer, x.Content, s.NamedInAnswer)
}

// learnBody looks into a body. What does not decode the tap will not keep.
func (m *maker) learnBody(h http.Header, body []byte, named func(contentType string, body []byte) []scrub.Named) {
	if len(body) == 0 {
		return
	}
	plain, err := exchange.Decode(h.Get("Content-Encoding"), body, MaxFile)
	if err != nil {
		return
	}
	m.scrub.LearnAll(named(h.Get("Content-Type"), plain))
	m.scrub.LearnBytes(plain)
}

// A message is one exchange as a foreign file tells it.
type message struct {
	Where  string // in the file, for people
	Method string
	URL    string // absolute
	Header http.Header
	Body   []byte
	Unsent string // why there is no body; "" where there is, or none was sent

	Status  int // 0 where nothing answered
	Answer  http.Header
	Content []byte // the body of the answer
	Lost    string // why there is no content; "" where there is
	Proto   string // of the answer, as the file says it; "" for HTTP/1.1
	Trailer http.Header
	Cut     string // what cut the exchange, in the words of a tape; "" for nothing

	At   time.Time     // when the request was sent; zero where the file does not say
	Took time.Duration // until the answer had come
}

func (x *message) size() int64 { return int64(len(x.Body) + len(x.Content)) }

// tapeURL returns a URL as a tape has it. The error is why no request to it can stand on one.
func tapeURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("its URL cannot be read")
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "":
		return "", errors.New("its URL is not absolute")
	case scheme == "ws" || scheme == "wss":
		return "", errWebSocket
	case scheme != "http" && scheme != "https":
		return "", errors.New("its URL begins with " + scheme + ": and nothing was asked over HTTP")
	case u.Host == "":
		return "", errors.New("its URL has no host")
	}
	return bare.URL(u), nil
}

var errWebSocket = errors.New("a WebSocket is no exchange of HTTP")

// outMode is the permission of a tape: a file of a project as any other.
const outMode = 0o644

// checkOut returns the error of a tape that is there: nothing is written over.
func checkOut(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%s: %w: remove it with %s, or name another", path, fs.ErrExist, filepath.Base(path)+tape.StoreSuffix)
	}
	return nil
}

// keep writes the tape and its blobs, or nothing. The blobs come first: they change nothing as long as no tape names them.
func (m *maker) keep(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	store, err := cas.OpenDir(path+tape.StoreSuffix, &cas.DirOptions{Sync: m.opts.Sync})
	if err != nil {
		return err
	}
	put := make(map[cas.Digest]bool) // true for what was not there before
	defer func() {
		if err == nil {
			return
		}
		for d, ours := range put {
			if ours {
				_ = os.Remove(store.Path(d))
			}
		}
		_ = os.Remove(path + tape.StoreSuffix) // stays where something else lies in it
	}()
	var text bytes.Buffer
	w, err := tape.NewWriter(&text, &tape.Header{
		Producer: "tapedeck import " + m.of.name + " " + version.Version, Argv: []string{}, Extra: []tape.Field{bare.RulesField(m.scrub.Rules())},
	})
	if err != nil {
		return err
	}
	for i, r := range m.records {
		for _, p := range tape.Payloads(r.Kind) {
			if _, done := put[p.Hash]; p.Inline || done {
				continue
			}
			_, missing := os.Lstat(store.Path(p.Hash))
			put[p.Hash] = missing != nil
			if err := copyBlob(p.Hash, m.store, store); err != nil {
				return err
			}
		}
		r.Seq = uint64(i)
		if err := w.Append(r); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Flush(), checkOut(path)); err != nil { // somebody else may have been faster
		return err
	}
	return durable.WriteFile(path, text.Bytes(), &durable.Options{Mode: outMode, Sync: m.opts.Sync})
}

func copyBlob(d cas.Digest, from, to cas.Store) error {
	b, err := from.Get(d)
	if err == nil {
		_, err = to.Put(b)
	}
	return err
}

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

// version adds to what is known of the producer.
func (m *maker) version(s string) {
	if m.report.Version != "" {
		s = m.report.Version + ", " + s
	}
	m.report.Version = s
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
