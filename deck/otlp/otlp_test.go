package otlp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/otlp"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// made is a recording of what put records.
func made(t testing.TB, put func(tt *Tape)) *recording.Recording {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "one.rec")
	tt := NewTape(t)
	put(tt)
	tt.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{tt.Path: recording.TapeName, tt.Path + tape.StoreSuffix: recording.TapeName + tape.StoreSuffix} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil && !errors.Is(err, fs.ErrNotExist) { // no blobs
			t.Fatal(err)
		}
	}
	m := recording.NewManifest(time.Unix(1000, 0).UTC())
	m.ID, m.State, m.Argv, m.Exit = "one", recording.StateFinished, []string{"agent"}, &recording.Exit{Code: 3}
	m.Program.Path, m.Cwd, m.Axes = "/usr/bin/agent", "/work", map[string]recording.Axis{}
	if err := m.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func agent(tt *Tape) {
	tt.Call("llm:1", Asks("be kind", ReadTool, User("the prompt")), Says("the answer"))
	call := &tape.MCPJSONRPC{Server: "files", Method: "tools/call", Transport: "stdio", Conversation: 1, Request: tt.Payload(`{"id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"secret plan"}}}`)}
	call.Error = "differs in a reason"
	call.Response, call.LatencyMS = tt.Payload(`{"id":1,"result":{"content":[],"isError":true}}`), 1
	tt.Record(call)
	tt.Record(&tape.ProcessSpawn{Program: "/bin/ls", Args: []string{"secret plan"}, SpawnID: 3, ParentSpawnID: 2})
	tt.Record(&tape.ProcessSpawn{Program: "/bin/sh", SpawnID: 2, ParentSpawnID: 1, ExitCode: 2, Stdout: tt.Payload("an output")})
	x := &tape.HTTPExchange{}
	x.Method, x.URL, x.Status = "GET", "https://ann:a%20reason@api.example.com:8443/items?q=the+question#a%20reason", 503
	tt.Record(x)
	tt.Record(&tape.FileWrite{File: tape.File{Path: "a"}})
	tt.Record(&tape.ProcessSpawn{Program: "/usr/bin/agent", SpawnID: 1, ExitCode: 3})
}

// A span is what a test looks at.
type span struct {
	otlp.Span
	of map[string]string // its attributes
}

func spansIn(t *testing.T, requests []byte) (out []span) {
	t.Helper()
	for line := range bytes.Lines(requests) {
		var r struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []otlp.Span }
			}
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.ResourceSpans[0].ScopeSpans[0].Spans {
			of := make(map[string]string)
			for _, a := range s.Attributes {
				for _, v := range a.Value {
					of[a.Key] = fmt.Sprint(v)
				}
			}
			out = append(out, span{s, of})
		}
	}
	return out
}

func TestExport(t *testing.T) {
	rec := made(t, agent)
	var first, second bytes.Buffer
	n, err := otlp.Export(rec, nil, otlp.ToFile(&first))
	if err != nil || n != 6 {
		t.Fatalf("%d spans, %v", n, err)
	}
	if _, err := otlp.Export(rec, nil, otlp.ToFile(&second)); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatalf("%v: a second export is another one", err)
	}
	for _, content := range []string{"the question", "a reason", "the prompt", "the answer", "secret plan", "be kind", "an output"} {
		if bytes.Contains(first.Bytes(), []byte(content)) {
			t.Errorf("%q is content", content)
		}
	}
	spans := spansIn(t, first.Bytes())
	var got []string
	ids := make(map[string]bool)
	for _, s := range spans {
		got = append(got, fmt.Sprintf("%s %d %d %s", s.Name, s.Kind, s.Status.Code, s.of["error.type"]))
		if ids[s.SpanID] = true; len(s.TraceID) != 32 || len(s.SpanID) != 16 || s.TraceID != spans[0].TraceID || !strings.HasPrefix(s.Start, "1000") {
			t.Errorf("%+v", s)
		}
	}
	want := "chat m 3 0 |tools/call read 3 2 no_answer|ls 1 0 |sh 1 2 exit 2|GET 3 2 503|invoke_agent agent 1 2 exit 3"
	if joined := strings.Join(got, "|"); joined != want {
		t.Errorf("%s\nexpected %s", joined, want)
	}
	run := spans[5]
	if spans[2].ParentID != spans[3].SpanID || spans[3].ParentID != run.SpanID || run.ParentID != "" || len(ids) != 6 {
		t.Errorf("parents: %s %s %s of %v", spans[2].ParentID, spans[3].ParentID, run.ParentID, ids)
	}
	for key, want := range map[string]string{"gen_ai.provider.name": "anthropic", "gen_ai.operation.name": "chat", "gen_ai.conversation.id": "one/llm:1"} {
		if spans[0].of[key] != want {
			t.Errorf("%s is %q, expected %q", key, spans[0].of[key], want)
		}
	}
	if of := spans[4].of; of["url.full"] != "https://api.example.com:8443/items" || of["server.port"] != "8443" || of["http.response.status_code"] != "503" {
		t.Errorf("%v", of)
	}
}

// TestLongNames: a name of a recording is cut.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("ü", 10_000)
	rec := made(t, func(tt *Tape) {
		call := &tape.MCPJSONRPC{Server: long, Method: "tools/call", Transport: "stdio", Conversation: 1, Request: tt.Payload(`{"id":1,"method":"tools/call","params":{"name":"` + long + `"}}`)}
		tt.Record(call)
	})
	var out bytes.Buffer
	if _, err := otlp.Export(rec, nil, otlp.ToFile(&out)); err != nil || out.Len() > 5000 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	if s := spansIn(t, out.Bytes())[0]; s.Name != "tools/call "+strings.Repeat("ü", 128)+"…" {
		t.Error(s.Name)
	}
}

// TestUnfinished: of a run that was cut the program has no record, nor has the parent of what it started.
func TestUnfinished(t *testing.T) {
	rec := made(t, func(tt *Tape) { tt.Record(&tape.ProcessSpawn{Program: "/bin/ls", SpawnID: 3, ParentSpawnID: 1}) })
	var out bytes.Buffer
	if _, err := otlp.Export(rec, nil, otlp.ToFile(&out)); err != nil {
		t.Fatal(err)
	}
	spans := spansIn(t, out.Bytes())
	if len(spans) != 2 || spans[0].Name != "ls" || spans[0].ParentID != spans[1].SpanID {
		t.Errorf("%+v", spans)
	}
}

func TestParts(t *testing.T) {
	rec := made(t, func(tt *Tape) {
		for range 2500 {
			tt.Record(&tape.ProcessSpawn{Program: "/bin/true", SpawnID: 7})
		}
		tt.Record(&tape.ProcessSpawn{Program: "agent", SpawnID: 1})
	})
	var requests int
	n, err := otlp.Export(rec, nil, func([]byte) error { requests++; return nil })
	if err != nil || n != 2501 || requests != 3 {
		t.Errorf("%d spans in %d requests, %v", n, requests, err)
	}
}

// vars stand in for the environment.
type vars map[string]string

func (v vars) get(name string) string { return v[name] }

func TestTo(t *testing.T) {
	rec := made(t, agent)
	answer := ""
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Team") != "a b" {
			w.WriteHeader(http.StatusNotFound)
		}
		body, _ = io.ReadAll(r.Body)
		io.WriteString(w, answer)
	}))
	defer server.Close()
	export := func(headers string) error {
		to, err := otlp.To(server.URL, vars{"OTEL_EXPORTER_OTLP_HEADERS": headers}.get)
		if err == nil {
			_, err = otlp.Export(rec, nil, func(b []byte) error { return to.Send(t.Context(), b) })
		}
		return err
	}
	if err := export("x-team=a%20b, y=z"); err != nil || len(spansIn(t, body)) != 6 {
		t.Fatalf("%v: %s", err, body)
	}
	if err := export(""); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("refused: %v", err)
	}
	answer = `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`
	if err := export("x-team=a%20b"); err == nil || !strings.Contains(err.Error(), "rejected 2 spans: too old") {
		t.Errorf("rejected in part: %v", err)
	}
	answer = `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"` + strings.Repeat("ü", 10_000) + `"}}`
	if err := export("x-team=a%20b"); err == nil || len(err.Error()) > 600 || !strings.HasSuffix(err.Error(), "ü…") {
		t.Errorf("a long reason: %v", err)
	}
	if err := export("secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a header: %v", err)
	}
	other := httptest.NewServer(http.RedirectHandler(server.URL, http.StatusFound))
	defer other.Close()
	if to, err := otlp.To(other.URL, vars{"OTEL_EXPORTER_OTLP_HEADERS": "x-team=a%20b"}.get); err != nil || to.Send(t.Context(), []byte("{}")) == nil {
		t.Errorf("%v: a receiver that is elsewhere is followed", err)
	}
	for _, bad := range []string{"localhost:4318", "ftp://a", "http://"} {
		if _, err := otlp.To(bad, vars{}.get); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestKeysHidden: neither a receiver's name nor its errors have the keys of its address.
func TestKeysHidden(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	host := strings.TrimPrefix(down.URL, "http://")
	to, err := otlp.To("http://ann:hunter2secret@"+host+"?api_key=Zx8Kq2Lm", vars{}.get)
	if err != nil {
		t.Fatal(err)
	}
	if want := "http://***@" + host + "/v1/traces?***"; to.String() != want {
		t.Errorf("%s, want %s", to, want)
	}
	refused := to.Send(t.Context(), []byte("{}"))
	_, bad := otlp.To(host+"?api_key=Zx8Kq2Lm", vars{}.get)
	for _, err := range []error{refused, bad} {
		if err == nil || !strings.Contains(err.Error(), host) || strings.Contains(err.Error(), "hunter2secret") || strings.Contains(err.Error(), "Zx8Kq2Lm") {
			t.Error(err)
		}
	}
}
