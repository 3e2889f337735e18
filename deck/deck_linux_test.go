package deck_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestReplayIsAClosedWorld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "answer to %s", r.URL.Path) })
	res, out := b.record("get", "https://api.example.com/a", "http://api.example.com/b", "https://api.example.com/a")
	if res.Exit.Code != 0 {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	srv.Close()
	v, again := b.replay(res.Recording, nil)
	b.green(v)
	if again != out {
		t.Errorf("the program saw %q, recorded was %q", again, out)
	}

	argv, _ := b.self("get", "https://api.example.com/a", "https://api.example.com/other")
	v, again = b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
	if v.Faithful() {
		t.Error("a request that is not on the tape went unnoticed")
	}
	if len(v.Refused) != 1 || !strings.HasSuffix(v.Refused[0].URL, "/other") {
		t.Errorf("refused: %+v", v.Refused)
	}
	if len(v.Unasked) != 2 { // /b, and the second /a
		t.Errorf("unasked: %+v", v.Unasked)
	}
	if !strings.Contains(again, "not on the tape") {
		t.Errorf("the program was told %q", again)
	}
}

// TestDigitsOfNumbersCount: a request that differs in the last of 19 digits of an id is another one, and the verdict shows
// both.
func TestDigitsOfNumbersCount(t *testing.T) {
	t.Parallel()
	const url = "https://api.example.com/orders"
	b := newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	res, _ := b.record("post", url, `{"order":1234567890123456788}`)
	v, _ := b.replay(res.Recording, nil)
	b.green(v)

	argv, _ := b.self("post", url, `{"order":1234567890123456789}`)
	v, _ = b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
	var text bytes.Buffer
	if err := v.WriteText(&text, nil); err != nil {
		t.Fatal(err)
	}
	if v.Faithful() || len(v.Refused) != 1 || len(v.Unasked) != 1 {
		t.Errorf("refused %+v, unasked %+v", v.Refused, v.Unasked)
	}
	if want := "      - 1234567890123456788\n      + 1234567890123456789\n"; !strings.Contains(text.String(), want) {
		t.Errorf("the verdict does not say %q:\n%s", want, &text)
	}
}

func TestNothingGetsOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Error("the program reached the host's loopback")
			c.Write([]byte("x"))
			c.Close()
		}
	}()
	res, out := b.record("ways-out", l.Addr().String())
	if strings.Contains(out, "GOT OUT") {
		t.Errorf("recording:\n%s", out)
	}
	v, out := b.replay(res.Recording, nil)
	if strings.Contains(out, "GOT OUT") {
		t.Errorf("replay:\n%s", out)
	}
	b.green(v)
	tried := refusals(t, res.Recording)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, want := range []string{":" + port, "192.0.2.1:22", "192.0.2.1:9999", "raw", "vsock"} {
		if !strings.Contains(tried, want) {
			t.Errorf("%s is not on the tape, which has:\n%s", want, tried)
		}
	}
}

// refusals lists what the tape says was not let out.
func refusals(t *testing.T, rec *recording.Recording) string {
	var out strings.Builder
	for _, k := range kinds(t, rec) {
		if k, ok := k.(*tape.NetRefused); ok {
			fmt.Fprintf(&out, "%s:%d %s\n", k.Addr, k.Port, k.Reason)
		}
	}
	return out.String()
}

func kinds(t *testing.T, rec *recording.Recording) []tape.Kind {
	t.Helper()
	f, err := rec.OpenTape()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []tape.Kind
	for r, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Kind)
	}
	return out
}

func TestStreamsKeepTheirChunks(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"identity", "gzip"} {
		t.Run(encoding, func(t *testing.T) {
			b := newBench(t)
			srv := b.upstream("stream.example.com", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				var to io.Writer = w
				flush := w.(http.Flusher).Flush
				if encoding == "gzip" {
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					defer z.Close()
					to, flush = z, func() { z.Flush(); w.(http.Flusher).Flush() }
				}
				noise := rand.New(rand.NewPCG(1, 2))
				for i := range 300 {
					fmt.Fprintf(to, "data: {\"n\":%d,\"pad\":\"%x\"}\n\n", i, noise.Uint64N(1<<(i%64)))
					if i == 150 { // more than one read takes, however late it comes
						fmt.Fprintf(to, ": %x\n\n", randomBytes(noise, 256<<10))
					}
					flush()
				}
			})
			res, out := b.record("chunks", "https://stream.example.com/", encoding)
			srv.Close()
			kept := filepath.Join(t.TempDir(), "replay")
			v, again := b.replay(res.Recording, &deck.ReplayOptions{Out: kept})
			b.green(v)
			if out != again || strings.Count(out, "data:") != 300 {
				t.Errorf("%d bytes recorded, %d replayed", len(out), len(again))
			}
			recorded := stream(t, res.Recording.TapePath())
			if len(recorded) < 2 || !slices.Equal(recorded, stream(t, filepath.Join(kept, "run.tape"))) {
				t.Errorf("the boundaries differ: %d chunks recorded", len(recorded))
			}
		})
	}
}

// randomBytes are n bytes that no encoding makes shorter.
func randomBytes(from *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(from.Uint32())
	}
	return b
}

// stream returns the offsets and lengths of the chunks of a tape's one answer.
func stream(t *testing.T, path string) (out [][2]int64) {
	t.Helper()
	f, err := tape.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := r.Kind.(*tape.HTTPExchange); ok {
			for _, c := range k.Stream {
				out = append(out, [2]int64{c.Offset, c.Length})
			}
		}
	}
	return out
}

func TestUpstreamThatDiesInTheMiddle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("cut.example.com", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte("the first part"))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	res, out := b.record("chunks", "https://cut.example.com/", "identity")
	v, again := b.replay(res.Recording, nil)
	b.green(v)
	if out != again || !strings.Contains(out, "the first part") || strings.Contains(out, "<nil>") {
		t.Errorf("recorded %q, replayed %q", out, again)
	}
}

func TestConversationsDoNotCross(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.anthropic.com", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond) // pace is the upstream's own
		fmt.Fprintf(w, `{"answer":"%08x"}`, rand.Uint32())
	})
	res, out := b.record("talk", "https://api.anthropic.com", "8")
	if res.Counts["llm_call"] != 40 {
		t.Fatalf("%d calls of 40 on the tape: %s", res.Counts["llm_call"], out)
	}
	for range often(5) {
		v, _ := b.replay(res.Recording, nil)
		if *v.Crossed != 0 || len(v.Refused) > 0 || len(v.Unasked) > 0 {
			t.Fatalf("crossed %d, refused %d, unasked %d", *v.Crossed, len(v.Refused), len(v.Unasked))
		}
	}
}

func TestNoSecretInTheRecording(t *testing.T) {
	t.Parallel()
	const canary = "sk-canary-7Q2x9ZpLm4Vt8KrW3nHd"
	b := newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte(canary)) || r.Header.Get("Authorization") != "Bearer "+canary {
			t.Error("the upstream did not get the program's own bytes")
		}
		fmt.Fprintf(w, "echo %s and the key", body)
	})
	clean := slices.Clip(b.env)
	b.env = slices.Concat(clean, []string{"CANARY_API_KEY=" + canary})
	res, out := b.record("secrets", "https://api.example.com/v1", "--api-key="+canary)
	if res.Exit.Code != 0 || !strings.Contains(out, canary) {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	searchFor(t, res.Recording.Dir, canary)
	for name, env := range map[string][]string{
		"the same": b.env, "none": clean, "another": slices.Concat(clean, []string{"CANARY_API_KEY=sk-canary-0000000000000000000A"}),
	} {
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{Env: env})
		if !v.Faithful() {
			var text bytes.Buffer
			v.WriteText(&text, nil)
			t.Errorf("with %s secret:\n%s", name, &text)
		}
	}
}

// searchFor fails the test where any file under dir, or its name, holds the secret in any of its disguises.
func searchFor(t *testing.T, dir, secret string) {
	t.Helper()
	disguises := []string{secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte(secret))[:24], base64.RawURLEncoding.EncodeToString([]byte(secret))[:24]}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, d := range disguises {
			if bytes.Contains(b, []byte(d)) || strings.Contains(path, d) {
				t.Errorf("%s holds the secret as %q", path, d)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnotherCheckoutIsListedAlike: a listing shows where recordings lie, in a checkout that has none too, and when files were last
// written that are as they were.
func TestAnotherCheckoutIsListedAlike(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	checkout, then := t.TempDir(), time.Unix(1e9, 0)
	for _, dir := range []string{b.dir, checkout} {
		if err := os.WriteFile(filepath.Join(dir, "in.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(b.dir, "in.txt"), then, then); err != nil {
		t.Fatal(err)
	}
	res, out := b.sh("ls -a . .tapedeck; stat -c %Y in.txt")
	if !strings.Contains(out, ".tapedeck") || !strings.Contains(out, ".gitignore") || !strings.Contains(out, "1000000000") {
		t.Fatalf("recorded: %q", out)
	}
	for _, now := range []bool{false, true} {
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{TreeNow: now, TreeAt: checkout})
		b.green(v)
	}
}

// TestAFileThatHoldsASecret is replayed where its bytes are another's: the stand-in that the program finds is what changes
// are told from. The work tree as it is now is shown where that is asked for.
func TestAFileThatHoldsASecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".env", "KEY=sk-ant-api03-0123456789abcdef0123456789abcdef\n")
	write("in.txt", "as recorded")
	write("cache", "c")
	res, first := b.record("errand")
	write(".env", "KEY=another\n")
	write("in.txt", "as it is now")
	for name, o := range map[string]*deck.ReplayOptions{"jail": {}, "outside": {Proxy: true}} {
		v, out := b.replay(res.Recording, o)
		b.green(v)
		if out != first || !strings.Contains(strings.Join(v.Notes, "\n"), ".env was not shown as recorded") {
			t.Errorf("%s: printed %q, notes %q", name, out, v.Notes)
		}
	}
	for name, o := range map[string]*deck.ReplayOptions{"jail": {TreeNow: true}, "outside": {TreeNow: true, Proxy: true}} {
		if v, out := b.replay(res.Recording, o); v.Faithful() || !strings.Contains(out, "as it is now") {
			t.Errorf("%s: over the work tree as it is now it printed %q", name, out)
		}
	}
}
