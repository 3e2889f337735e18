package exchange_test

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// secret is a value that the scrubber of a rig knows; it must never reach a tape, a store or a part.
const secret = "zq7Xw2Lk9Vb4Nm6Tr8Yp"

// classifier takes {"model":M,"messages":[…]} for a call of a model, everything else for plain HTTP. What stands behind a # in a message
// of a socket is an id.
type classifier struct{ noModels }

// noModels is the part of a Classifier that knows no model, and no masks of a socket's messages.
type noModels struct{}

func (noModels) InCallOrder(*exchange.Request) *exchange.Request { return nil }

func (noModels) Sockets(*exchange.Request) exchange.Turns { return nil }

func (noModels) Rename(message []byte, _ func(string) string) []byte { return message }

var idIn = regexp.MustCompile(`#([a-z0-9]+)`)

func (classifier) Classify(r *exchange.Request) (*exchange.Identity, error) {
	var call struct {
		Model    string            `json:"model"`
		Messages []json.RawMessage `json:"messages"`
	}
	surface := scrub.Renumber(r.Body)
	if r.Method == "SEND" {
		surface = idIn.ReplaceAll(surface, []byte("<id>"))
	}
	if json.Unmarshal(r.Body, &call) != nil || call.Model == "" {
		key := exchange.Key{Method: r.Method, URL: r.URL, Request: cas.Sum(surface)}
		return &exchange.Identity{Key: key, Surface: surface}, nil
	}
	id := &exchange.Identity{
		Key: exchange.Key{
			Kind: exchange.LLM, Provider: "test", Endpoint: "messages", Model: call.Model, Request: cas.Sum(surface),
		},
		Surface: surface,
		Usage: func(_ string, body []byte) []byte {
			var answer struct {
				Usage json.RawMessage `json:"usage"`
			}
			if json.Unmarshal(body, &answer) != nil {
				return nil
			}
			return answer.Usage
		},
	}
	var talk exchange.Talk
	for _, m := range call.Messages {
		talk.Turns = append(talk.Turns, cas.Sum(m))
	}
	if len(talk.Turns) > 0 {
		talk.Opening = talk.Turns[0]
	}
	id.Talk = func() exchange.Talk { return talk }
	return id, nil
}

func (classifier) MaskURL(url string) string { return url }

// Traits are the values of two headers.
func (classifier) Traits(r *exchange.Request) *exchange.Traits {
	t := &exchange.Traits{Attempt: r.Header.Get("X-Attempt")}
	for _, id := range r.Header["X-Id"] {
		t.IDs = append(t.IDs, exchange.ID{Text: id})
	}
	for _, id := range idIn.FindAllSubmatch(r.Body, -1) {
		t.IDs = append(t.IDs, exchange.ID{Text: string(id[1])})
	}
	t.Texts = r.Header["X-Who"]
	return t
}

// rig is one run: a tape in memory and what writes to it.
type rig struct {
	t     testing.TB
	tape  *bytes.Buffer
	store cas.Store
	tap   *exchange.Tap
	scrub *scrub.Scrubber
	rec   *tape.Recorder
	flush func() // of the tape, for what does not end with that
	parts string
}

func newRig(t testing.TB, opts exchange.TapOptions) *rig {
	t.Helper()
	return newRigWith(t, opts, cas.NewMemory())
}

func newRigWith(t testing.TB, opts exchange.TapOptions, store cas.Store) *rig {
	t.Helper()
	parts := t.TempDir()
	if opts.PartDir == "" {
		opts.PartDir = parts
	}
	return newRigOf(t, opts, store, parts)
}

// newRigWithoutParts makes a rig whose Tap keeps no parts.
func newRigWithoutParts(t testing.TB, store cas.Store) *rig {
	t.Helper()
	return newRigOf(t, exchange.TapOptions{}, store, t.TempDir())
}

func newRigOf(t testing.TB, opts exchange.TapOptions, store cas.Store, parts string) *rig {
	t.Helper()
	g := &rig{t: t, tape: new(bytes.Buffer), store: store, parts: parts, scrub: newScrubber()}
	w, err := tape.NewWriter(g.tape, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: g.store})
	g.flush = func() {
		if err := rec.Flush(); err != nil {
			t.Error(err)
		}
	}
	g.rec = rec
	g.tap = exchange.NewTap(rec, classifier{}, g.scrub, &opts)
	t.Cleanup(g.noSecret)
	return g
}

func newScrubber() *scrub.Scrubber {
	return scrub.New(scrub.Key{1}, &scrub.Options{Env: []string{"TEST_TOKEN=" + secret}})
}

// noSecret looks for the secret in everything that was written.
func (g *rig) noSecret() {
	if strings.Contains(g.tape.String(), secret) {
		g.t.Error("the secret is on the tape")
	}
	for d, err := range g.store.All() {
		if err != nil {
			g.t.Fatal(err)
		}
		if b, _ := g.store.Get(d); bytes.Contains(b, []byte(secret)) {
			g.t.Error("the secret is in the store")
		}
	}
	if strings.Contains(g.partText(), secret) {
		g.t.Error("the secret is in a part")
	}
}

// partText is what stands in the parts now.
func (g *rig) partText() string {
	entries, err := os.ReadDir(g.parts)
	if err != nil {
		g.t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		b, err := os.ReadFile(g.parts + "/" + e.Name())
		if err != nil {
			g.t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

func (g *rig) begin(url, body string, header ...string) *exchange.Open {
	g.t.Helper()
	r := &exchange.Request{Method: http.MethodPost, URL: url, Header: headers(header...), Body: []byte(body)}
	o, err := g.tap.Begin(r)
	if err != nil {
		g.t.Fatal(err)
	}
	return o
}

// answer runs an exchange to its end.
func (g *rig) answer(o *exchange.Open, cut string, header http.Header, chunks ...[]byte) {
	g.t.Helper()
	if err := o.Response(http.StatusOK, header); err != nil {
		g.t.Fatal(err)
	}
	for _, c := range chunks {
		if err := o.Chunk(c); err != nil {
			g.t.Fatal(err)
		}
	}
	if err := o.End(cut); err != nil {
		g.t.Fatal(err)
	}
}

// headers makes a header of names and values in turn.
func headers(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// records reads the tape.
func (g *rig) records() iter.Seq2[*tape.Record, error] {
	g.t.Helper()
	r, err := tape.NewReader(bytes.NewReader(g.tape.Bytes()), "tape")
	if err != nil {
		g.t.Fatal(err)
	}
	return r.Records()
}

// kinds are the records of the tape.
func (g *rig) kinds() []tape.Kind {
	g.t.Helper()
	var kinds []tape.Kind
	for r, err := range g.records() {
		if err != nil {
			g.t.Fatal(err)
		}
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

// last is the last exchange on the tape, with what was added to its record.
func (g *rig) last() (*tape.Exchange, map[string]string) {
	g.t.Helper()
	kinds := g.kinds()
	if len(kinds) == 0 {
		g.t.Fatal("the tape is empty")
	}
	x, extra := exchangeOf(g.t, kinds[len(kinds)-1])
	added := make(map[string]string)
	for _, f := range extra {
		var s string
		if f.Name == "at" { // a number
			continue
		}
		if err := json.Unmarshal(f.Value, &s); err != nil {
			g.t.Fatal(err)
		}
		added[f.Name] = s
	}
	return x, added
}

func exchangeOf(t testing.TB, k tape.Kind) (*tape.Exchange, []tape.Field) {
	t.Helper()
	switch k := k.(type) {
	case *tape.LLMCall:
		return &k.Exchange, k.Extra
	case *tape.HTTPExchange:
		return &k.Exchange, k.Extra
	}
	t.Fatalf("a %s", k.Name())
	return nil, nil
}

// payload is the bytes of a payload.
func (g *rig) payload(p *tape.Payload) string {
	g.t.Helper()
	if p == nil {
		return ""
	}
	if p.Inline {
		return p.Text
	}
	b, err := g.store.Get(p.Hash)
	if err != nil || int64(len(b)) != p.Len {
		g.t.Fatal(len(b), p.Len, err)
	}
	return string(b)
}

// chunksOf is the response, chunk by chunk.
func (g *rig) chunksOf(x *tape.Exchange) []string {
	g.t.Helper()
	body := g.payload(x.Response)
	var out []string
	at := int64(0)
	for _, c := range x.Stream {
		if c.Offset != at || c.Offset+c.Length > int64(len(body)) {
			g.t.Fatalf("chunk %+v in %d bytes", c, len(body))
		}
		out = append(out, body[c.Offset:c.Offset+c.Length])
		at += c.Length
	}
	if at != int64(len(body)) {
		g.t.Fatalf("the chunks hold %d of %d bytes", at, len(body))
	}
	return out
}

// value is the value of a header on the tape, "" for none.
func value(fields []tape.HeaderField, name string) string {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func readAll(t testing.TB, r io.ReadCloser, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
