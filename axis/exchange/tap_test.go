package exchange_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const url = "https://api.example.com/v1/x"

var placeholder = regexp.MustCompile(`td_[a-z0-9_]+?_[0-9a-f]{12}`)

// hide puts P in the place of every placeholder.
func hide(s string) string { return placeholder.ReplaceAllString(s, "P") }

func TestTapCall(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	o := g.begin(url+"?key="+secret, `{"model":"m","messages":["my token is `+secret+`"]}`,
		"Authorization", "Bearer "+secret, "X-B", "2", "X-A", "1")
	if strings.Contains(string(o.Request().Body), secret) || o.Arrival() != 1 {
		t.Errorf("%+v", o.Request())
	}
	g.answer(o, "", headers("Content-Type", "application/json", "X-Latin", "caf\xe9"), []byte(`{"usage":{"n":1},`), []byte(`"x":1}`))

	call, ok := g.kinds()[0].(*tape.LLMCall)
	if !ok {
		t.Fatalf("%T", g.kinds()[0])
	}
	if call.Provider != "test" || call.Endpoint != "messages" || call.Model != "m" || string(call.Usage) != `{"n":1}` {
		t.Errorf("%+v", call)
	}
	x := &call.Exchange
	if x.Method != "POST" || x.Status != 200 || x.Arrival != 1 || x.Error != "" || !strings.HasPrefix(x.Lane, "llm:") {
		t.Errorf("%+v", x)
	}
	if got := hide(g.payload(x.RequestPayload)); got != `{"model":"m","messages":["my token is P"]}` {
		t.Error(got)
	}
	var names []string
	for _, f := range x.RequestHeaders {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"Authorization", "X-A", "X-B"}) {
		t.Error(names)
	}
	if got := g.chunksOf(x); !slices.Equal(got, []string{`{"usage":{"n":1},`, `"x":1}`}) {
		t.Error(got)
	}
	if value(x.ResponseHeaders, "X-Latin") != "caf\ufffd" {
		t.Errorf("%q", x.ResponseHeaders)
	}
	book, err := exchange.NewBook(g.records(), classifier{}, g.store)
	if err != nil {
		t.Fatal(err)
	}
	if rec, ok := book.Take(o.Identity().Key); !ok || value(rec.Exchange.ResponseHeaders, "X-Latin") != "caf\xe9" {
		t.Errorf("%+v", rec)
	}
	if x.Stream[0].G == 0 || x.Stream[1].G <= x.Stream[0].G || x.Stream[1].TMS < x.Stream[0].TMS {
		t.Errorf("%+v", x.Stream)
	}
	if g.partText() != "" {
		t.Error("the part is left")
	}
}

// TestSecretAcrossChunks cuts a secret at every place and in small pieces: it is never written, and belongs to the chunk in
// which it began.
func TestSecretAcrossChunks(t *testing.T) {
	before, after := "data: one ", " two\n\n"
	whole := before + secret + after
	for cut := range whole {
		g := newRig(t, exchange.TapOptions{})
		o := g.begin(url, "")
		if err := o.Response(http.StatusOK, headers("Content-Length", "36")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{whole[:cut], whole[cut:]} {
			if err := o.Chunk([]byte(c)); err != nil {
				t.Fatal(err)
			}
			g.noSecret()
		}
		if err := o.End(""); err != nil {
			t.Fatal(err)
		}
		x, _ := g.last()
		got := g.chunksOf(x)
		want := []string{whole[:cut], hide(whole[cut:])}
		switch end := len(before) + len(secret); {
		case cut <= len(before):
			want[1] = strings.Replace(whole[cut:], secret, "P", 1)
		case cut < end:
			want = []string{before + "P", after}
		default:
			want[0] = strings.Replace(whole[:cut], secret, "P", 1)
		}
		if len(got) != 2 || hide(got[0]) != want[0] || hide(got[1]) != want[1] {
			t.Errorf("cut at %d: %q, want %q", cut, got, want)
		}
		if value(x.ResponseHeaders, "Content-Length") != "" {
			t.Error("a Content-Length that no longer holds")
		}
	}
}

func TestManySmallChunks(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	whole := strings.Repeat("x"+secret, 3) + strings.Repeat("y", 40)
	var chunks [][]byte
	for i := range whole {
		chunks = append(chunks, []byte(whole[i:i+1]))
	}
	g.answer(g.begin(url, ""), "", nil, chunks...)
	x, _ := g.last()
	if got := hide(strings.Join(g.chunksOf(x), "")); got != "xPxPxP"+strings.Repeat("y", 40) || len(x.Stream) != len(whole) {
		t.Errorf("%d chunks: %s", len(x.Stream), got)
	}
}

func TestEncodedAnswer(t *testing.T) {
	events := []string{"data: one\n\n", "data: two\n\n", "data: three\n\n"}
	for coding := range encoders {
		g := newRig(t, exchange.TapOptions{})
		chunks := encode(t, coding, events...)
		g.answer(g.begin(url, ""), "", headers("Content-Encoding", coding, "Content-Length", "9"), chunks...)
		x, extra := g.last()
		for i, c := range g.chunksOf(x) {
			if c != string(chunks[i]) {
				t.Errorf("%s: chunk %d is not as it came", coding, i)
			}
		}
		if value(x.ResponseHeaders, "Content-Encoding") != coding || len(extra) != 0 || x.Error != "" {
			t.Errorf("%s: %+v %v", coding, x, extra)
		}
	}
}

func TestEncodedAnswerWithSecret(t *testing.T) {
	events := []string{"data: one\n\n", "data: " + secret + "\n\n", "data: three\n\n"}
	for coding := range encoders {
		g := newRig(t, exchange.TapOptions{})
		chunks := encode(t, coding, events...)
		g.answer(g.begin(url, ""), "", headers("Content-Encoding", coding, "Content-Length", "9", "X", "y"), chunks...)
		x, extra := g.last()
		got := g.chunksOf(x)
		if hide(strings.Join(got, "")) != "data: one\n\ndata: P\n\ndata: three\n\n" {
			t.Errorf("%s: %q", coding, got)
		}
		if len(got) != 3 || got[0] != events[0] {
			t.Errorf("%s: chunks %q", coding, got)
		}
		if extra["response_decoded"] != coding || len(x.ResponseHeaders) != 1 {
			t.Errorf("%s: %+v %v", coding, x.ResponseHeaders, extra)
		}
	}
}

// TestAnswerLost sees what cannot be scanned stay off the tape, and the record say so.
func TestAnswerLost(t *testing.T) {
	packed := encode(t, "gzip", strings.Repeat("a", 100)+secret)[0]
	for name, tc := range map[string]struct {
		coding string
		body   []byte
		limit  int64
	}{
		"unknown coding": {"compress", packed, 0},
		"broken":         {"gzip", bytes.Repeat([]byte("x"), 100), 0},
		"ends early":     {"gzip", packed[:20], 0},
		"too large":      {"gzip", packed, 10},
	} {
		g := newRig(t, exchange.TapOptions{MaxBody: tc.limit})
		g.answer(g.begin(url, ""), "", headers("Content-Encoding", tc.coding), tc.body, []byte("y"))
		x, extra := g.last()
		if x.Response != nil || x.Stream != nil || x.Error == "" || extra["response_lost"] == "" {
			t.Errorf("%s: %+v %v", name, x, extra)
		}
	}
}

// TestAnswerCut keeps what came of an answer that its upstream did not end.
func TestAnswerCut(t *testing.T) {
	for coding := range encoders {
		chunks := encode(t, coding, "data: one\n\n", "data: "+secret+"\n\n", "end")
		for n := range 3 {
			g := newRig(t, exchange.TapOptions{})
			g.answer(g.begin(url, ""), "unexpected EOF from "+secret, headers("Content-Encoding", coding), chunks[:n]...)
			x, _ := g.last()
			want := []string{"", string(bytes.Join(chunks[:min(n, 1)], nil)), "data: one\n\ndata: P\n\n"}[n]
			if got := hide(g.payload(x.Response)); got != want {
				t.Errorf("%s, %d chunks: %q, want %q", coding, n, got, want)
			}
			if hide(x.Error) != "unexpected EOF from P" {
				t.Error(x.Error)
			}
		}
	}
}

// TestAnswerCutAnywhere cuts encoded answers in the middle of a block: nothing of the secret is kept, not even what the
// decoder could not reach.
func TestAnswerCutAnywhere(t *testing.T) {
	for coding := range encoders {
		whole := encode(t, coding, "data: one "+secret+" two "+secret)[0]
		for n := range whole {
			g := newRig(t, exchange.TapOptions{})
			g.answer(g.begin(url, ""), "cut", headers("Content-Encoding", coding), whole[:n])
			if x, _ := g.last(); x.Error == "" {
				t.Errorf("%s cut at %d: %+v", coding, n, x)
			}
		}
	}
}

func TestEmptyEncodedAnswer(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	g.answer(g.begin(url, ""), "", headers("Content-Encoding", "gzip", "Content-Length", "7"))
	if x, _ := g.last(); x.Response == nil || x.Error != "" || value(x.ResponseHeaders, "Content-Length") != "7" {
		t.Errorf("%+v", x)
	}
}

func TestEncodedRequest(t *testing.T) {
	body := `{"model":"m","messages":["a"]}`
	g := newRig(t, exchange.TapOptions{})
	packed := string(encode(t, "zstd", body)[0])
	plain, encoded := g.begin(url, body), g.begin(url, packed, "Content-Encoding", "zstd")
	if plain.Identity().Key != encoded.Identity().Key || string(encoded.Request().Body) != body {
		t.Error("the encoding matters to the key")
	}
	g.answer(encoded, "", nil)
	if x, _ := g.last(); g.payload(x.RequestPayload) != packed || value(x.RequestHeaders, "Content-Encoding") != "zstd" {
		t.Errorf("%+v", x)
	}
	g.answer(g.begin(url, string(encode(t, "zstd", "a"+secret)[0]), "Content-Encoding", "zstd"), "", nil)
	x, extra := g.last()
	if hide(g.payload(x.RequestPayload)) != "aP" || extra["request_decoded"] != "zstd" || len(x.RequestHeaders) != 0 {
		t.Errorf("%+v %v", x, extra)
	}
	g.answer(g.begin(url, "broken", "Content-Encoding", "zstd"), "", nil, []byte("ok"))
	x, extra = g.last()
	if x.RequestPayload != nil || extra["request_lost"] == "" || x.Error != "" || g.payload(x.Response) != "ok" {
		t.Errorf("%+v %v", x, extra)
	}
	g.answer(plain, "", nil)
}

func TestLongAnswer(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	var chunks [][]byte
	for range 20 {
		chunks = append(chunks, chunk)
	}
	g.answer(g.begin(url, ""), "", nil, chunks...)
	x, _ := g.last()
	if x.Response.Inline || g.payload(x.Response) != string(bytes.Join(chunks, nil)) || len(g.chunksOf(x)) != 20 {
		t.Errorf("%+v", x.Response)
	}
}

// TestKilled reads what a recorder that was killed in the middle of its answers leaves.
func TestKilled(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	call := g.begin(url, `{"model":"m","messages":["a"]}`, "Authorization", "Bearer "+secret)
	if err := call.Response(http.StatusOK, headers("Content-Type", "text/event-stream")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"data: one\n\n", "data: two\n\n" + secret[:5]} {
		if err := call.Chunk([]byte(c)); err != nil {
			t.Fatal(err)
		}
	}
	long := g.begin(url+"/long", strings.Repeat("r", 5000))
	if err := long.Response(http.StatusAccepted, nil); err != nil {
		t.Fatal(err)
	}
	const text = "what it says " // at whose end no secret can begin
	if err := long.Chunk(bytes.Repeat([]byte(text), 1000)); err != nil {
		t.Fatal(err)
	}
	torn := []byte(`{"type":"record","seq":0,"kind":{"kind":"http_ex`)
	if err := os.WriteFile(filepath.Join(g.parts, "7"), torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.parts, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	parts, err := exchange.Parts(g.parts)
	if err != nil || len(parts) != 2 {
		t.Fatal(parts, err)
	}
	first, ok := parts[0].Kind.(*tape.LLMCall)
	if !ok || first.Provider != "test" || first.RequestDigest != call.Identity().Key.Request || first.Lane != call.Lane() {
		t.Errorf("%+v", parts[0].Kind)
	}
	if p := parts[0]; p.Error != exchange.RecorderEnded || p.Status != 200 || p.Response.Text != "data: one\n\ndata: two\n\n" ||
		p.Len != 22 || p.RequestPayload.Text == "" || value(p.ResponseHeaders, "Content-Type") != "text/event-stream" {
		t.Errorf("%+v", p.Exchange)
	}
	if p := parts[1]; p.Len != 1000*int64(len(text)) || p.Response.Inline || p.Arrival != 2 || p.RequestPayload.Len != 5000 {
		t.Errorf("%+v", p.Exchange)
	}
	r, err := parts[1].Open()
	if got := readAll(t, r, err); got != strings.Repeat(text, 1000) {
		t.Error(len(got))
	}
	head, err := exchange.ReadPartHead(parts[0].Path)
	info, serr := os.Stat(parts[0].Path)
	if err != nil || serr != nil || head.Arrival != 1 || head.Head != info.Size()-22 {
		t.Errorf("%+v, %v, %v", head, err, serr)
	}
	if head, err := exchange.ReadPartHead(filepath.Join(g.parts, "7")); head != nil || err != nil {
		t.Errorf("a torn head: %+v, %v", head, err)
	}
	if _, err := exchange.ReadPartHead(filepath.Join(g.parts, "8")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a head that is not there: %v", err)
	}
	if parts, err := exchange.Parts(filepath.Join(g.parts, "none")); err != nil || parts != nil {
		t.Error(parts, err)
	}
	clock := string(tape.AppendRecord(nil, &tape.Record{Kind: &tape.ClockRead{Source: "wall"}}))
	for _, bad := range []string{clock, `[]`, ``, `{"type":"record"}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "1"), []byte(bad+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := exchange.Parts(dir); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestPartFails sees an answer whose part cannot be written end the recording.
func TestPartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := newRig(t, exchange.TapOptions{PartDir: file})
	o := g.begin(url, "")
	if o.Response(http.StatusOK, nil) == nil || o.Chunk([]byte("x")) == nil {
		t.Error("the answer seems to be kept")
	}
	g.failed(o, syscall.ENOTDIR)
}

// failed fails the test unless o ends with the recorder, which failed with cause: o is on no tape, nor is what comes next.
func (g *rig) failed(o *exchange.Open, cause error) {
	g.t.Helper()
	if err := o.End(""); !errors.Is(err, cause) {
		g.t.Errorf("End: %v", err)
	}
	if _, err := g.tap.Begin(&exchange.Request{Method: "GET", URL: url}); !errors.Is(err, cause) || !errors.Is(g.tap.Err(), cause) {
		g.t.Errorf("Begin: %v, Err: %v", err, g.tap.Err())
	}
	if kinds := g.kinds(); len(kinds) > 0 {
		g.t.Errorf("on the tape: %v", kinds)
	}
}

// TestStoreFails sees an answer that its store would not take end the recording, and its part stay.
func TestStoreFails(t *testing.T) {
	store := &brokenStore{Memory: cas.NewMemory()}
	g := newRigWith(t, exchange.TapOptions{}, store)
	o := g.begin(url, "short")
	if err := o.Response(http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	if err := o.Chunk(bytes.Repeat([]byte("."), 5000)); err != nil {
		t.Fatal(err)
	}
	store.broken = errors.New("disk full")
	g.failed(o, store.broken)
	if parts, err := exchange.Parts(g.parts); err != nil || len(parts) != 1 || parts[0].Len != 5000 {
		t.Error(parts, err)
	}
}

// TestRequestFails sees a request whose body the store would not take end the recording.
func TestRequestFails(t *testing.T) {
	store := &brokenStore{Memory: cas.NewMemory(), broken: errors.New("disk full")}
	g := newRigWith(t, exchange.TapOptions{}, store)
	r := &exchange.Request{Method: "POST", URL: url, Body: bytes.Repeat([]byte("."), 5000)}
	if _, err := g.tap.Begin(r); !errors.Is(err, store.broken) || !errors.Is(g.tap.Err(), store.broken) {
		t.Errorf("Begin: %v, Err: %v", err, g.tap.Err())
	}
}

type brokenStore struct {
	*cas.Memory
	broken error
}

func (s *brokenStore) Put(b []byte) (cas.Digest, error) {
	if s.broken != nil {
		return cas.Digest{}, s.broken
	}
	return s.Memory.Put(b)
}

func (s *brokenStore) PutReader(r io.Reader) (cas.Digest, int64, error) {
	if s.broken != nil {
		return cas.Digest{}, 0, s.broken
	}
	return s.Memory.PutReader(r)
}

// TestStreamIsWhole checks that however an answer was cut, and however it was encoded, what is stored is what the scrubber
// makes of the whole, in as many chunks as came.
func TestStreamIsWhole(t *testing.T) {
	piece := rapid.SampledFrom([]string{secret, secret[:7], "data: ", "\n\n", "text ", "-----BEGIN", "td_x_0123456789ab"})
	rapid.Check(t, func(rt *rapid.T) {
		var chunks [][]byte
		for _, pieces := range rapid.SliceOfN(rapid.SliceOfN(piece, 0, 4), 1, 6).Draw(rt, "chunks") {
			chunks = append(chunks, []byte(strings.Join(pieces, "")))
		}
		g := newRig(t, exchange.TapOptions{})
		g.answer(g.begin(url, ""), "", nil, chunks...)
		x, _ := g.last()
		want, _ := newScrubber().Bytes(bytes.Join(chunks, nil))
		if got := g.chunksOf(x); strings.Join(got, "") != string(want) || len(got) != len(chunks) {
			rt.Fatalf("%q, want %q", got, want)
		}
	})
}

// TestLongEncodedAnswer sees chunks that decode to much keep together.
func TestLongEncodedAnswer(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	first, second := strings.Repeat("a", 100_000)+secret, strings.Repeat("b", 100_000)
	g.answer(g.begin(url, ""), "", headers("Content-Encoding", "gzip"), encode(t, "gzip", first, second)...)
	x, _ := g.last()
	got := g.chunksOf(x)
	if hide(strings.Join(got, "")) != hide(strings.Replace(first, secret, "P", 1))+second || len(got) != 2 || got[1] != second {
		t.Errorf("%d chunks", len(got))
	}
}

func TestTapReplays(t *testing.T) {
	g := newRig(t, exchange.TapOptions{Replay: true})
	body := `{"model":"m","messages":["a"]}`
	answered := g.begin(url, body)
	if answered.Lane() != "" {
		t.Error(answered.Lane())
	}
	book := newBook(t, said(1, "llm:abc#2", body))
	if _, ok := answered.Take(book); !ok || answered.Lane() != "llm:abc#2" {
		t.Error("a recorded request has no answer")
	}
	g.answer(answered, "", nil, []byte("x"))
	if x, _ := g.last(); x.Lane != "llm:abc#2" {
		t.Error(x.Lane)
	}
	refused := g.begin(url, body)
	if _, ok := refused.Take(book); ok {
		t.Error("an answer is given twice")
	}
	refused.Refuse("nothing like it, " + secret)
	g.answer(refused, "", nil, []byte("no"))
	if x, _ := g.last(); x.Lane != exchange.Unmatched || hide(x.Error) != "nothing like it, P" || x.Arrival != 2 {
		t.Errorf("%+v", x)
	}
	live := g.begin(url, `{"model":"m","messages":["a","b"]}`)
	g.answer(live, "", nil)
	if x, _ := g.last(); x.Lane != "llm:abc#2" {
		t.Errorf("a live request does not go on in the lane of the replayed one: %s", x.Lane)
	}
	dead := g.begin(url, "")
	if err := dead.End("reset"); err != nil {
		t.Fatal(err)
	}
	if x, _ := g.last(); x.Status != 0 || x.Response != nil || x.Lane != "http:api.example.com" || x.Error != "reset" {
		t.Errorf("%+v", x)
	}
	if err := dead.End("again"); err != nil || len(g.kinds()) != 4 {
		t.Error("a second End leaves a record", err)
	}
}

func TestTapWithoutRecorder(t *testing.T) {
	tap := exchange.NewTap(nil, classifier{}, newScrubber(), nil)
	o, err := tap.Begin(&exchange.Request{Method: "GET", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Response(http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	if err := o.Chunk([]byte("x")); err != nil {
		t.Error(err)
	}
	if err := o.End(""); err != nil {
		t.Error(err)
	}
}
