package scrub_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestEveryOffset: a stream that is cut anywhere gives what the whole gives.
func TestEveryOffset(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn", `X_KEY=a"b\c/déf😀g`}})
	var texts []string
	for _, tt := range shapes {
		texts = append(texts, tt.text, tt.text+tt.text)
	}
	for _, name := range []string{"plain", "JSON in JSON", "base64 at 1", "base64 in lines", "every byte", "ASCII twice"} {
		texts = append(texts, "x"+encodings[name]("Zx9QvT2mKw7Lp4Rn")+encodings[name](`a"b\c/déf😀g`)+"y")
	}
	for _, text := range texts {
		want, _ := s.Bytes([]byte(text))
		for cut := range len(text) + 1 {
			var out strings.Builder
			w := s.Writer(&out)
			_, err1 := io.WriteString(w, text[:cut])
			_, err2 := io.WriteString(w, text[cut:])
			if err := errors.Join(err1, err2, w.Close()); err != nil || out.String() != string(want) {
				t.Fatalf("%q cut at %d\n got %q, %v\nwant %q", text, cut, out.String(), err, want)
			}
		}
	}
}

// secretParts are parts of which texts are drawn in which secrets begin, end and overlap.
var secretParts = []string{
	"Zx9QvT2mKw7Lp4Rn", "Zx9QvT2m", "mKw7Lp4Rn", "sk-", "sk-ant-", "AbCdEf0123456789", "proj-", "AIza", "ghp_", "abcdefghijklmnopqrstuvwxyz",
	"Bearer ", "basic ", "YW5uOmh1bnRlcjI=", "://", ":", "@", "/", "ann", "eyJ", ".", "-----BEGIN ", "PRIVATE KEY", "-----", "-----END ",
	"\n", `\n`, `\`, `\\`, `\u005a`, "%5A", "x9QvT2mKw7Lp4Rn", "%", "u", " ", "td_", "_", "0123456789ab", "a", "Wng5UXZUMm1Ldzd",
	"McDRSbg==", "5a7839517654", "326d4b77374c7034526e", "Proc-Type: ", "=", "%255A", "%5Cu005a", "%5C", "%25", `"`, "\x1b[3", "m", ";",
}

func draw(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(secretParts), 0, 14).Draw(t, "parts"), "")
}

func TestAnySplit(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn", "B_KEY=mKw7Lp4Rnabc"}})
	rapid.Check(t, func(t *rapid.T) {
		text := draw(t)
		whole, found := s.Bytes([]byte(text))
		var out strings.Builder
		w := s.Writer(&out)
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != string(whole) || w.Found() != found {
			t.Fatalf("%q\n  whole %q\nin parts %q", text, whole, out.String())
		}
		if strings.Contains(out.String(), "Zx9QvT2mKw7Lp4Rn") {
			t.Fatalf("%q: the known value is left in %q", text, out.String())
		}
	})
}

// TestSeen: a long text gives the same the second time, after another one, and as a stream that remembers nothing.
func TestSeen(t *testing.T) {
	filler := strings.Repeat("prose and {\"json\": 1}, \n", 300)
	rapid.Check(t, func(t *rapid.T) {
		s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn", "B_KEY=mKw7Lp4Rnabc"}})
		var texts []string
		for range rapid.IntRange(1, 4).Draw(t, "texts") {
			var b strings.Builder
			for range rapid.IntRange(2, 6).Draw(t, "parts") {
				b.WriteString(filler[:rapid.IntRange(0, len(filler)).Draw(t, "filler")])
				b.WriteString(draw(t))
			}
			texts = append(texts, b.String())
		}
		for _, text := range append(texts, texts...) {
			whole, found := s.Bytes([]byte(text))
			var out strings.Builder
			w := s.Writer(&out)
			io.WriteString(w, text)
			w.Close()
			if string(whole) != out.String() || found != w.Found() {
				t.Fatalf("%q: the whole and the stream differ", text)
			}
		}
	})
}

// TestRenumberIgnoresTheKey: whatever the key, what is compared is the same.
func TestRenumberIgnoresTheKey(t *testing.T) {
	env := &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn", "B_KEY=mKw7Lp4Rnabc"}}
	one, two := scrub.New(scrub.Key{1}, env), scrub.New(scrub.Key{2}, env)
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(draw(t))
		a, _ := one.Bytes(text)
		b, _ := two.Bytes(text)
		if a, b := scrub.Renumber(a), scrub.Renumber(b); !bytes.Equal(a, b) {
			t.Fatalf("%q: %q and %q", text, a, b)
		}
	})
}

func TestWriterReleasesWhatIsHarmless(t *testing.T) {
	var out strings.Builder
	w := scrub.New(testKey, nil).Writer(&out)
	for _, tt := range []struct {
		write, want string
		held        int
	}{
		{"event: x\n\n", "event: x\n\n", 0},
		{"data sk-ant-", "data ", 7},
		{"on", "", 9},
		{"ly. ", "sk-ant-only. ", 0},
		{"end s", "end ", 1},
	} {
		out.Reset()
		if _, err := io.WriteString(w, tt.write); err != nil {
			t.Fatal(err)
		}
		if out.String() != tt.want || w.Held() != tt.held {
			t.Errorf("after %q: %q came, %d held; want %q, %d", tt.write, out.String(), w.Held(), tt.want, tt.held)
		}
	}
	out.Reset()
	if err := w.Close(); err != nil || out.String() != "s" || w.Found() {
		t.Errorf("close: %v, %q, found %v", err, out.String(), w.Found())
	}
}

// TestHeldIsBounded: however long what looks like the beginning of a secret goes on, little is held back.
func TestHeldIsBounded(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=aaaaaaaaaaaaaaaaaaab", "B_KEY=abababab"}})
	for _, tt := range []struct{ start, more string }{
		{"Bearer ", "a1"}, {"sk-ant-", "a1"}, {"eyJ", "a1"}, {"https://", "a:"}, {"-----BEGIN PRIVATE KEY-----", "abcd"},
		{"-----BEGIN PRIVATE KEY-----", "\n"}, {"-----BEGIN PRIVATE KEY-----", "abcdefghijklmnopqrstuv\n"}, {"td_", "a"},
		{"a", "a"}, {"", "abababab"}, {`\`, `\`}, {"YWFh", "YWFh"}, {"YWFh", "\n"},
	} {
		text := tt.start + strings.Repeat(tt.more, 24<<10/len(tt.more))
		var out bytes.Buffer
		w := s.Writer(&out)
		for piece := range slices.Chunk([]byte(text), 1000) {
			if _, err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
			if w.Held() > 17<<10 {
				t.Fatalf("%q: %d bytes are held", tt.start, w.Held())
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if whole, _ := s.Bytes([]byte(text)); !bytes.Equal(whole, out.Bytes()) {
			t.Errorf("%q and many %q: the stream differs from the whole", tt.start, tt.more)
		}
	}
}

var errDisk = errors.New("disk full")

// failing takes n bytes and then fails.
type failing struct{ n, calls int }

func (f *failing) Write(p []byte) (int, error) {
	f.calls++
	if f.n -= len(p); f.n < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestWriterFailsClosed(t *testing.T) {
	f := &failing{n: 10}
	w := scrub.New(testKey, nil).Writer(f)
	if _, err := io.WriteString(w, "0123456789"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "more sk-ant-"); !errors.Is(err, errDisk) {
		t.Fatalf("got %v", err)
	}
	calls := f.calls
	if _, err := io.WriteString(w, "again"); !errors.Is(err, errDisk) {
		t.Errorf("after the error: %v", err)
	}
	if err := w.Close(); !errors.Is(err, errDisk) {
		t.Errorf("close: %v", err)
	}
	if f.calls != calls {
		t.Error("something was written after the error")
	}
}

// short takes less than it is given and does not say so.
type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) / 2, nil }

func TestWriterNoticesShortWrites(t *testing.T) {
	if _, err := io.WriteString(scrub.New(testKey, nil).Writer(short{}), "text"); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

func TestWriterAfterClose(t *testing.T) {
	w := scrub.New(testKey, nil).Writer(io.Discard)
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(w, "late"); !errors.Is(err, scrub.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func FuzzScrub(f *testing.F) {
	for _, s := range append(slices.Clone(secretParts), pem, jwt) {
		f.Add([]byte(s), 3)
	}
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn"}})
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		in := string(b)
		whole, _ := s.Bytes(b)
		if string(b) != in {
			t.Fatal("the input was changed")
		}
		if got := stream(t, s, in, max(1, n%64)); got != string(whole) {
			t.Fatalf("%q\n  whole %q\nin parts %q", in, whole, got)
		}
	})
}
