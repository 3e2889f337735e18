package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// LogOptions say how a Log numbers, and what it learns. Nil and zero work.
type LogOptions struct {
	// Taken is the highest number of a conversation on the tape that is replayed: a conversation that is none of those gets a
	// higher one. 0 while recording.
	Taken uint64
	// Learn is told of each server before anything of its conversation is written: it makes the secrets among its arguments and
	// variables known to the scrubber. Nil for nobody.
	Learn func(o *Opened)
}

// A Log writes the MCP conversations of one run to its tape. Its methods may be called by several goroutines at once.
type Log struct {
	rec      *tape.Recorder
	scrubber *scrub.Scrubber
	mask     *masks.Masker
	learn    func(o *Opened)

	// passing is held from the record of what a server says over a pipe until it was passed on, so that the lines of several servers
	// pass in the order of the tape.
	passing sync.Mutex
	out     lastOut

	stderrBy atomic.Pointer[Conversation] // whose server wrote to its stderr last

	mu   sync.Mutex
	last uint64          // number of the conversation that was begun last
	used map[string]bool // names of servers
	lost []string
}

// NewLog returns a Log that writes to rec. With a nil rec nothing is written. The scrubber takes the secrets out of what is written,
// nil takes none; m masks what is compared, nil masks nothing.
func NewLog(rec *tape.Recorder, s *scrub.Scrubber, m *masks.Masker, o *LogOptions) *Log {
	l := &Log{rec: rec, scrubber: s, mask: m, used: make(map[string]bool)}
	if o != nil {
		l.last, l.learn = o.Taken, o.Learn
	}
	return l
}

// Lost lists, for people, what passed in conversations and is not on the tape: of such a run nothing can be said.
func (l *Log) Lost() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lost)
}

func (l *Log) lose(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, what)
}

// number returns the number of a conversation that begins. One that was recorded has its number and its name.
func (l *Log) number(r *Recorded) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r != nil {
		l.used[r.Server] = true
		l.last = max(l.last, r.Conversation)
		return r.Conversation
	}
	l.last++
	return l.last
}

// name returns the name of one more conversation with a server.
func (l *Log) name(server string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := server
	for n := 2; l.used[name]; n++ {
		name = fmt.Sprintf("%s#%d", server, n)
	}
	l.used[name] = true
	return name
}

// str returns a string as it may be written.
func (l *Log) str(s string) string {
	if l.scrubber == nil {
		return s
	}
	return l.scrubber.String(s)
}

func (l *Log) url(s string) string {
	if l.scrubber == nil {
		return s
	}
	return l.scrubber.URL(s)
}

// A Recorded is a conversation that stands on a tape.
type Recorded struct {
	Server       string // as the tape names it: "NAME", "NAME#2"
	Conversation uint64
	Within       uint64 // the conversation of the server that held it as a client; 0 for the program's own
	Transport    string // "stdio" or "http"
	Program      string // of stdio, redacted
	Args         []string
	URL          string // of http, redacted
	Protocol     string
	Methods      map[string]int // how often the client asked for each
}

// The transports.
const (
	Stdio = "stdio"
	HTTP  = "http"
)

// keep puts the messages of a line into the store.
func (l *Log) keep(line *Line) (out []kept, err error) {
	out = make([]kept, len(line.Messages))
	for i := range out {
		m := &line.Messages[i]
		if !line.Batch { // with the white space around it
			m.Raw = bytes.TrimSuffix(line.Text, []byte{'\n'})
		}
		if out[i], err = l.keepOne(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keepOne puts a message into the store. What becomes a blob takes as long to write as to compare: both are done at once.
func (l *Log) keepOne(m *Message) (kept, error) {
	k := kept{Message: m}
	if len(m.Raw) <= tape.InlineLimit {
		k.digest = l.Digest(m.Method, m.value())
		p, err := l.rec.Payload(m.Raw)
		k.payload = p
		return k, err
	}
	digest := make(chan cas.Digest, 1) // the goroutine ends by itself
	go func() { digest <- l.Digest(m.Method, m.value()) }()
	p, err := l.rec.Payload(m.Raw)
	k.payload, k.digest = p, <-digest
	return k, err
}

// redactOpened returns o as it may be written, and the true bytes of what is not UTF-8.
func (l *Log) redactOpened(o *Opened) (out Opened, raw []tape.RawBytes) {
	safe := func(key, v string) string {
		text, bytes := tape.SafeString(l.str(v))
		if bytes != nil {
			raw = append(raw, tape.RawBytes{Key: key, Bytes: bytes})
		}
		return text
	}
	out = Opened{Transport: o.Transport, Recorded: o.Recorded, Within: o.Within, PID: o.PID}
	out.Program, out.Cwd = safe("program", o.Program), safe("cwd", o.Cwd)
	for i, a := range o.Args {
		out.Args = append(out.Args, safe(fmt.Sprintf("args.%d", i), a))
	}
	if o.Given != nil {
		for i, v := range o.Given() {
			out.given = append(out.given, safe(fmt.Sprintf("env.%d", i), v))
		}
	}
	out.URL, _ = tape.SafeString(l.url(o.URL))
	return out, raw
}

// redactID returns an id as it stands in a redacted message.
func (l *Log) redactID(id json.RawMessage) json.RawMessage {
	if l.scrubber == nil {
		return id
	}
	out, _ := l.scrubber.Bytes(id)
	return out
}

// A Line is one line of a conversation without its secrets.
type Line struct {
	Text     []byte    // as it stands on the tape
	Messages []Message // of Text; nil where it is no JSON-RPC
	Batch    bool
}

// Redact takes the secrets out of a line of JSON-RPC: within strings, so that JSON stays what it is; a number that is one becomes
// a string. What its names tell of secrets is known from then on. A line that is no JSON-RPC comes back without messages, and with
// its secrets: it may be a part of a longer text, which is scrubbed as one. Where nothing is to be taken out Text is line.
func (l *Log) Redact(from Side, line []byte) *Line {
	messages, batch, err := Parse(line)
	if err != nil {
		return &Line{Text: line}
	}
	if l.scrubber == nil {
		return &Line{line, messages, batch}
	}
	text, found := redact(l.scrubber, from, line)
	if !found {
		return &Line{line, messages, batch}
	}
	if messages, batch, err = Parse(text); err != nil {
		body := bytes.TrimRight(line, "\r\n") // nothing is told of it but that it was there
		return &Line{Text: append(concealed(l.scrubber, body), line[len(body):]...)}
	}
	return &Line{text, messages, batch}
}

// redact returns a line of JSON without its secrets, and whether it had any.
func redact(s *scrub.Scrubber, from Side, line []byte) (out []byte, found bool) {
	_, over := s.LearnAll(clean(s, s.NamedInTool(from != Client, line)))
	plain := s.HideAt(line, over)
	if _, found = s.LearnBytes(plain); !found {
		return plain, len(over) > 0
	}
	out, _ = s.LearnBytes(hideTokens(s, plain))
	return out, true
}

// clean takes the secrets out of the names: a placeholder tells the name of what it stands for.
func clean(s *scrub.Scrubber, all []scrub.Named) []scrub.Named {
	for i := range all {
		all[i].Name = s.String(all[i].Name)
		all[i].At.Name = all[i].Name
	}
	return all
}

// hideTokens hides each string, number, true, false and null that cannot stand with what is secret in it taken out: what is no string, what a
// secret reaches over the end of, what it leaves half an escape of.
func hideTokens(s *scrub.Scrubber, line []byte) []byte {
	found := s.Find(line)
	out := make([]byte, 0, len(line))
	for at := 0; at < len(line); {
		start, end := nextToken(line, at)
		out = append(out, line[at:start]...)
		if token := line[start:end]; breaks(found, token, int64(start)) {
			out = append(append(append(out, '"'), concealed(s, bytes.Trim(token, `"`))...), '"')
		} else {
			out = append(out, token...)
		}
		at = end
	}
	return out
}

// concealed is the placeholder of a token, or of a line.
func concealed(s *scrub.Scrubber, token []byte) []byte {
	return s.HideAt(token, []scrub.Place{{End: int64(len(token)), Name: "json", Value: string(token)}})
}

// nextToken returns where the next string or scalar from at on begins and ends: both are the line's end where there is none.
func nextToken(line []byte, at int) (start, end int) {
	for at < len(line) && bytes.IndexByte([]byte("{}[],: \t\r\n"), line[at]) >= 0 {
		at++
	}
	if at == len(line) {
		return at, at
	}
	if line[at] == '"' {
		return at, at + jsonscan.TextLen(line[at:])
	}
	n := bytes.IndexAny(line[at:], "{}[],: \t\r\n")
	if n < 0 {
		n = len(line) - at
	}
	return at, at + n
}

// breaks reports whether one of found, of the line in which the token begins at start, takes a part of it that it may not take.
func breaks(found []scrub.Range, token []byte, start int64) bool {
	end := start + int64(len(token))
	var left []byte // of a string, with an x for each secret
	at := start
	for _, r := range found {
		switch {
		case r.Start >= end || r.End <= start:
		case token[0] != '"' || r.Start <= start || r.End >= end:
			return true
		default:
			left = append(append(left, token[at-start:r.Start-start]...), 'x')
			at = r.End
		}
	}
	return left != nil && jsonscan.Valid(append(left, token[at-start:]...)) != nil
}

// metaPrefix begins the names of the protocol's own members of _meta.
const metaPrefix = "io.modelcontextprotocol/"

// madeUp are the members of _meta that are made up anew in each run.
var madeUp = []string{"progressToken", "traceparent", "tracestate", "baggage", metaPrefix + "subscriptionId"}

// Surface returns what is compared of the params, the result or the error of a redacted message: its canonical JSON without what is
// made up anew in each run (see the package comment), placeholders renumbered, volatile facts masked. method is that of the
// message, of an answer "". Params that are absent or null are {}. What has no canonical form is taken as it stands.
func (l *Log) Surface(method string, value json.RawMessage) []byte {
	return l.mask.Mask(scrub.Renumber(canonical(method, value)))
}

// Digest is the digest of Surface: params_digest, result_digest.
func (l *Log) Digest(method string, value json.RawMessage) cas.Digest {
	return cas.Sum(l.Surface(method, value))
}

// keyOf is what a redacted request is matched by.
func (l *Log) keyOf(m *Message) requestKey { return requestKey{m.Method, l.Digest(m.Method, m.Params)} }

func canonical(method string, value json.RawMessage) []byte {
	if len(value) == 0 || string(value) == "null" {
		return []byte("{}")
	}
	v, err := canonjson.Parse(value)
	if err != nil {
		return value
	}
	dropMadeUp(method, &v)
	return v.Append(make([]byte, 0, len(value)))
}

// dropMadeUp takes what is made up anew in each run out of the params of a method, or out of a result or an error.
func dropMadeUp(method string, v *canonjson.Value) {
	switch method {
	case "notifications/cancelled":
		drop(v, "requestId")
	case "notifications/progress":
		drop(v, "progressToken")
	}
	dropMeta(v)
}

// dropMeta takes what is made up out of _meta, and _meta where nothing else is in it.
func dropMeta(v *canonjson.Value) {
	i := slices.IndexFunc(v.Members, func(m canonjson.Member) bool { return m.Key == "_meta" })
	if i < 0 || v.Members[i].Value.Kind != canonjson.Object {
		return
	}
	meta := &v.Members[i].Value
	for _, name := range madeUp {
		drop(meta, name)
	}
	if len(meta.Members) == 0 {
		drop(v, "_meta")
	}
}

// drop takes a member out of an object.
func drop(v *canonjson.Value, name string) {
	v.Members = slices.DeleteFunc(v.Members, func(m canonjson.Member) bool { return m.Key == name })
}

// stderrSide is whose text that of stderr is said to be.
const stderrSide Side = "stderr"

const (
	// maxText is how much text, in bytes, is kept in memory until a message comes.
	maxText = 64 << 10
	// maxKey is how long, in bytes, the end of a key is waited for.
	maxKey = 1 << 20
)

// A text is what one source of a conversation writes that is no message: lines, and at the end a part of one. What it writes between two
// messages is scrubbed as one stream, for a secret may be spread over its lines, and so is a key that a message comes in the middle
// of. Where a record ends follows from the lines alone, not from what the scrubber knows: a replay knows other secrets.
type text struct {
	from  Side
	names *scrub.Scrubber // nil for none
	clean *scrub.Writer   // into out; nil for none
	out   bytes.Buffer    // what is decided and not written yet
	fed   int64           // bytes that the writer was given
	any   bool            // something is not written yet
	key   bool            // a key has begun, and not ended
	at    uint64          // place of the first line of that
	last  uint64          // place of the line that came last
}

func newText(from Side, s *scrub.Scrubber) *text {
	t := &text{from: from, names: s}
	t.begin()
	return t
}

// begin begins a stream.
func (t *text) begin() {
	if t.names != nil {
		t.clean, t.fed = t.names.Writer(&t.out), 0
	}
}

// add takes what came at a place.
func (t *text) add(b []byte, at uint64) {
	if !t.any {
		t.any, t.at = true, at
	}
	t.last = at
	if t.clean == nil {
		t.out.Write(b)
		return
	}
	_, over := t.names.LearnAll(clean(t.names, t.names.NamedInLines(b, true)))
	for i := range over {
		over[i].Start += t.fed
		over[i].End += t.fed
	}
	t.clean.HideAt(over)
	t.fed += int64(len(b))
	_, _ = t.clean.Write(b) // to memory
	if begin, end := bytes.LastIndex(b, keyBegins), bytes.LastIndex(b, keyEnds); begin != end {
		t.key = begin > end
	}
}

// What the first and the last line of a key of several lines begin with.
var keyBegins, keyEnds = []byte("-----BEGIN "), []byte("-----END ")

// full reports whether there is enough for a record.
func (t *text) full() bool { return t.out.Len() >= maxText || t.fed >= maxText }

// lines returns what there is and where it came, in the middle of a key the whole lines that stand before it; nil for nothing.
func (t *text) lines() (b []byte, at uint64) {
	if t.key && t.fed < maxKey {
		return t.take(bytes.LastIndexByte(t.out.Bytes(), '\n') + 1)
	}
	return t.rest()
}

// rest returns everything, and what follows is another stream.
func (t *text) rest() (b []byte, at uint64) {
	t.key = false
	if t.any && t.clean != nil {
		_ = t.clean.Close() // to memory
		t.begin()
	}
	return t.take(t.out.Len())
}

func (t *text) take(n int) (b []byte, at uint64) {
	if n == 0 {
		return nil, 0
	}
	b, at = bytes.Clone(t.out.Next(n)), t.at
	t.any = t.out.Len() > 0 || t.clean != nil && t.clean.Held() > 0
	t.at = t.last
	return b, at
}
