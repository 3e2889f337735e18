package deck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["disguises"] = playDisguises }

// A prober is the program of the matrix: it carries its secret to every place in every disguise, and says for each place
// whether it got its own bytes.
type prober struct {
	url, secret string
	failed      bool
}

// playDisguises is run with a URL and the secret in every disguise that an argument can be.
func playDisguises(args []string) int {
	p := &prober{url: args[0], secret: os.Getenv("CANARY_API_KEY")}
	stdin, _ := io.ReadAll(os.Stdin)
	p.check("stdin", string(stdin), all(p.secret))
	for i, d := range disguises {
		p.check("argument "+d.name, args[1+i], d.of(p.secret))
		p.check("variable "+d.name, os.Getenv(fmt.Sprintf("NOTE_%d", i)), "a note: "+d.of(p.secret)+".")
	}
	p.requests()
	p.answers()
	p.files()
	fmt.Println("on stdout:\n" + all(p.secret))
	fmt.Fprintln(os.Stderr, "on stderr:\n"+all(p.secret))
	if p.failed {
		return 3
	}
	return 0
}

func (p *prober) check(what, got, want string) {
	if got == want {
		fmt.Println(what, "is as it was")
		return
	}
	p.failed = true
	fmt.Printf("%s CHANGED: %.300q is not %.300q\n", what, got, want)
}

// requests sends the secret in every part of a request.
func (p *prober) requests() {
	var form, query = url.Values{}, url.Values{}
	header, path := http.Header{}, ""
	var cookies []string
	for i, d := range disguises {
		v := d.of(p.secret)
		form.Set(d.name, v)
		query.Set(fmt.Sprintf("q%d", i), v)
		if d.plain {
			header.Set(fmt.Sprintf("X-Note-%d", i), "a "+v+" z")
			cookies = append(cookies, fmt.Sprintf("c%d=of-%s-in-a-cookie", i, v))
		}
		path += "/" + url.PathEscape(v)
	}
	header.Set("Cookie", strings.Join(cookies, "; "))
	header.Set("Authorization", "Bearer "+p.secret)
	var parts bytes.Buffer
	m := multipart.NewWriter(&parts)
	m.SetBoundary("a-boundary-that-stays-the-same")
	for i, d := range slices.Concat(disguises, inLines) {
		w, _ := m.CreateFormFile("file", fmt.Sprintf("f%d-%s.txt", i, url.QueryEscape(p.secret)))
		io.WriteString(w, d.of(p.secret))
	}
	m.Close()
	user := strings.Replace(p.url, "://", "://"+url.UserPassword("ann", p.secret).String()+"@", 1)
	p.post("header", p.url, header, nil)
	p.post("userinfo", user, nil, nil)
	p.post("query", p.url+"/?"+query.Encode(), nil, nil)
	p.post("path", p.url+path, nil, nil)
	p.post("JSON", p.url, http.Header{"Content-Type": {"application/json"}}, []byte(quotedAll(p.secret)))
	p.post("text", p.url, http.Header{"Content-Type": {"text/plain"}}, []byte(all(p.secret)))
	p.post("form", p.url, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(form.Encode()))
	p.post("multipart", p.url, http.Header{"Content-Type": {m.FormDataContentType()}}, parts.Bytes())
	for _, coding := range codings[:4] {
		p.post("request in "+coding, p.url, http.Header{"Content-Encoding": {coding}}, packedAs(coding, quotedAll(p.secret)))
	}
}

// post sends a request. That the upstream got its bytes is for the upstream to see.
func (p *prober) post(what, url string, header http.Header, body []byte) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		p.check(what, err.Error(), "")
		return
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("X-What", what)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.check(what, err.Error(), "")
		return
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	p.check(what, string(answer), "got it")
}

// answers fetches answers that hold the secret.
func (p *prober) answers() {
	for _, kind := range []string{"text", "json", "bytes", "stream"} {
		want := all(p.secret)
		switch kind {
		case "json":
			want = quotedAll(p.secret)
		case "stream":
			want = events(p.secret)
		}
		b, err := get(p.url + "/answer/" + kind)
		if err != nil {
			b = []byte(err.Error())
		}
		p.check("answer as "+kind, string(b), want)
	}
	for _, coding := range codings {
		req, _ := http.NewRequest(http.MethodGet, p.url+"/packed/"+coding, nil)
		req.Header.Set("Accept-Encoding", strings.TrimPrefix(coding, "x-raw-"))
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			p.check(coding, err.Error(), "")
			continue
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		p.check("answer in "+coding, unpackedFrom(res.Header.Get("Content-Encoding"), b), quotedAll(p.secret))
	}
	for n := range len(event(p.secret)) {
		b, _ := get(fmt.Sprintf("%s/split/%d", p.url, n))
		p.check(fmt.Sprint("event in two at ", n), string(b), event(p.secret))
	}
	b, _ := get(p.url + "/deltas")
	p.check("deltas", textOf(string(b)), deltaText(p.secret))
}

// files reads and writes files that hold the secret, or are named by it.
func (p *prober) files() {
	b, err := os.ReadFile("found.txt")
	if err != nil {
		b = []byte(err.Error())
	}
	fmt.Printf("found.txt holds %d bytes\n", len(b))
	os.WriteFile("written.txt", []byte(all(p.secret)), 0o644)
	os.WriteFile("written.json", []byte(quotedAll(p.secret)), 0o644)
	os.WriteFile("written.txt.gz", packedAs("gzip", all(p.secret)), 0o644)
	os.WriteFile("object", packedAs("deflate", "blob 9\x00"+all(p.secret)), 0o644)
	os.WriteFile("copied.txt", b, 0o644)
	for _, d := range disguises {
		if name := d.of(p.secret); !strings.Contains(name, "/") && len(name) < 200 {
			os.WriteFile("named-"+name, []byte("x"), 0o644)
		}
	}
}

func event(v string) string { return "data: {\"text\":\"<" + quoted(v, 1) + ">\"}\n\n" }

// events is a stream of events with the secret in all disguises.
func events(v string) string {
	var b strings.Builder
	for _, d := range disguises {
		b.WriteString("data: {\"text\":\"<" + quoted(d.of(v), 1) + ">\"}\n\n")
	}
	return b.String()
}

// deltaText is what a model says, delta by delta.
func deltaText(v string) string { return "The key is " + v + ", and " + v + " again." }

// deltas is an answer in which text comes three characters at a time, and the text of a tool's arguments in between.
func deltas(v string) string {
	var b strings.Builder
	for i, piece := range slices.Collect(slices.Chunk([]byte(deltaText(v)), 3)) {
		fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}\n\n",
			quoted(string(piece), 1))
		if i == 5 {
			b.WriteString("event: ping\ndata: {\"type\": \"ping\"}\n\n")
		}
	}
	return b.String()
}

// textOf puts the deltas together again.
func textOf(stream string) string {
	var b strings.Builder
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(line, "data: ")
		var e struct {
			Delta struct{ Text string }
		}
		if ok && json.Unmarshal([]byte(data), &e) == nil {
			b.WriteString(e.Delta.Text)
		}
	}
	return b.String()
}

// serveDisguises is the upstream of playDisguises.
func serveDisguises(t *testing.T, secret string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := strings.Split(r.URL.Path, "/")
		switch {
		case r.Method == http.MethodPost:
			gotAll(t, r, secret)
			io.WriteString(w, "got it")
		case path[1] == "packed":
			w.Header().Set("Content-Encoding", strings.TrimPrefix(path[2], "x-raw-"))
			w.Write(packedAs(path[2], quotedAll(secret)))
		case path[1] == "split":
			var n int
			fmt.Sscan(path[2], &n)
			w.Header().Set("Content-Type", "text/event-stream")
			inPieces(w, event(secret)[:n], len(event(secret)))
			inPieces(w, event(secret)[n:], len(event(secret)))
		case path[1] == "deltas":
			w.Header().Set("Content-Type", "text/event-stream")
			inPieces(w, deltas(secret), 150)
		case path[2] == "json":
			io.WriteString(w, quotedAll(secret))
		case path[2] == "bytes":
			inPieces(w, all(secret), 1)
		case path[2] == "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			inPieces(w, events(secret), 1)
		default:
			io.WriteString(w, all(secret))
		}
	}
}

func inPieces(w http.ResponseWriter, text string, n int) {
	for piece := range slices.Chunk([]byte(text), n) {
		w.Write(piece)
		w.(http.Flusher).Flush()
	}
}

// gotAll fails the test unless a request holds what the program put into it.
func gotAll(t *testing.T, r *http.Request, secret string) {
	body, _ := io.ReadAll(r.Body)
	got := string(body)
	var want string
	switch what := r.Header.Get("X-What"); what {
	case "header":
		got, want = r.Header.Get("Authorization"), "Bearer "+secret
	case "userinfo":
		_, got, _ = r.BasicAuth()
		want = secret
	case "query":
		got, want = r.URL.Query().Get("q8"), disguises[8].of(secret)
	case "path":
		got = r.URL.Path
		for _, d := range disguises {
			want += "/" + d.of(secret)
		}
	case "JSON":
		want = quotedAll(secret)
	case "text":
		want = all(secret)
	case "form":
		form, _ := url.ParseQuery(got)
		got, want = form.Get("hex"), disguises[7].of(secret)
	default:
		if coding, ok := strings.CutPrefix(what, "request in "); ok {
			got, want = unpackedFrom(coding, body), quotedAll(secret)
		} else {
			want = got // of the multipart body: that it came
		}
	}
	if got != want {
		t.Errorf("the upstream got %.200q as %s, want %.200q", got, r.Header.Get("X-What"), want)
	}
}

// printed is what a program writes to both of its streams.
type printed struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// TestSecretsInAllDisguises: in no place and in no disguise does a secret reach the recording; the program gets its own
// bytes, and its replay is green with the same secret, with another one and with none.
func TestSecretsInAllDisguises(t *testing.T) {
	for name, secrets := range map[string][2]string{
		"a token":       {"cnry7Q2x9ZpLm4Vt8KrW3nHd", "Zother1Y0vUj5Gd6BqTsEfA8"},
		"a pass phrase": {`cn"ry\7Q 2x%9+p/4V&8<W=n#d`, `ot"he\1Y 0v%5+d/6B&s<f=A#z`},
	} {
		if long || name == "a pass phrase" { // with all that a token has, and what has to be escaped
			t.Run(name, func(t *testing.T) { testDisguises(t, secrets[0], secrets[1]) })
		}
	}
}

func testDisguises(t *testing.T, secret, other string) {
	b := newBench(t)
	clean := slices.Clip(b.env)
	srv := b.upstream("api.example.com", serveDisguises(t, secret))
	if err := os.WriteFile(filepath.Join(b.dir, "found.txt"), []byte(all(secret)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "found.txt.gz"), packedAs("gzip", all(secret)), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"https://api.example.com"}
	b.env = append(b.env, "CANARY_API_KEY="+secret)
	for i, d := range disguises {
		args = append(args, d.of(secret))
		b.env = append(b.env, fmt.Sprintf("NOTE_%d=a note: %s.", i, d.of(secret)))
	}
	argv, env := b.self("disguises", args...)
	var out printed
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts,
		Streams: deck.Streams{Stdin: strings.NewReader(all(secret)), Stdout: &out, Stderr: &out},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit.Code != 0 {
		t.Fatalf("exit %d:\n%s", res.Exit.Code, &out)
	}
	srv.Close()
	lookFor(t, res.Recording.Dir, secret)
	for what, value := range map[string]string{"the same": secret, "another": other, "another, everywhere": other, "no": ""} {
		if !long && (what == "the same" || what == "another") {
			continue
		}
		replayEnv := slices.Clone(clean)
		if value != "" {
			replayEnv = append(replayEnv, "CANARY_API_KEY="+value)
		}
		for i, d := range disguises {
			if strings.Contains(what, "everywhere") {
				replayEnv = append(replayEnv, fmt.Sprintf("NOTE_%d=a note: %s.", i, d.of(value)))
			}
		}
		kept := filepath.Join(t.TempDir(), "replay")
		var out printed
		v, err := deck.Replay(context.Background(), res.Recording, &deck.ReplayOptions{
			Env: replayEnv, Out: kept, ConfigDir: b.config, Streams: deck.Streams{Stdout: &out, Stderr: &out},
		})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "CHANGED") {
				t.Errorf("with %s secret: %s", what, line)
			}
		}
		if !v.Faithful() || len(v.NotCompared) > 0 {
			var text bytes.Buffer
			v.WriteText(&text, nil)
			t.Errorf("with %s secret:\n%s", what, &text)
		}
		lookFor(t, kept, secret)
		if value != "" {
			lookFor(t, kept, value)
		}
	}
}
