package scrub_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestReveal: what was scrubbed in any encoding comes back in the same one, and for another value as that is encoded.
func TestReveal(t *testing.T) {
	for _, value := range canaries {
		for name, encode := range encodings {
			recorded := scrub.New(testKey, nil)
			recorded.AddSecret("CANARY", value)
			text := "before {" + encode(value) + "} after"
			stored := recorded.String(text)
			if got := string(recorded.Reveal([]byte(stored))); got != text && !sameMeaning(got, text) {
				t.Errorf("%s of %q: %q became %q and came back as %q", name, value, text, stored, got)
			}
			replay := scrub.New(scrub.Key{9}, nil)
			replay.AddAlias(placeholder.FindString(recorded.String(value)), twin(value))
			text = "before {" + encode(twin(value)) + "} after"
			got := string(replay.Reveal([]byte(stored)))
			if got != text && !sameMeaning(got, text) {
				t.Errorf("%s of %q: %q reads as %q, want %q", name, value, stored, got, text)
			}
			if again := replay.String(got); again != stored {
				t.Errorf("%s of %q: recorded %q, replayed %q", name, value, stored, again)
			}
		}
	}
}

// sameMeaning tells whether two texts differ in what their percent-encoding escapes, or in the case of hex digits alone.
func sameMeaning(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	plainA, errA := url.PathUnescape(a)
	plainB, errB := url.PathUnescape(b)
	return errA == nil && errB == nil && plainA == plainB
}

// TestRevealLeavesTheRest: what nobody knows stays as it is, and so does a text without placeholders.
func TestRevealLeavesTheRest(t *testing.T) {
	s := scrub.New(testKey, nil)
	s.AddSecret("A_KEY", "Zx9QvT2mKw7Lp4Rn")
	for _, text := range []string{"", "plain", "td_other_0123456789ab", "td_", "td_other_zh_0123456789ab"} {
		if got := string(s.Reveal([]byte(text))); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestFormsAreRead: the rule of a placeholder never reads as a form that is not one.
func TestFormsAreRead(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z]{0,6}_?[Zz]?[bvhujpnrx0-9]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		s := scrub.New(testKey, nil)
		n := name.Draw(t, "name")
		s.AddSecret(n, "Zx9QvT2mKw7Lp4Rn")
		for _, how := range []string{"plain", "hex", "base64 at 1", "every byte"} {
			text := "{" + encodings[how]("Zx9QvT2mKw7Lp4Rn") + "}"
			stored := s.String(text)
			if got := string(s.Reveal([]byte(stored))); got != text {
				t.Fatalf("%s %s: %q as %q came back as %q", n, how, text, stored, got)
			}
			if got := string(scrub.Renumber([]byte(stored))); strings.Count(got, "td_#1") != 1 {
				t.Fatalf("%q renumbers to %q", stored, got)
			}
		}
	})
}

// delta is one event of a model's answer.
func delta(text string) string {
	return "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" +
		quote(text, 1) + "\"}}\n\n"
}

var regexpForm = regexp.MustCompile(`_z[a-z0-9]+_`)

// textOf puts the texts of events together.
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

// TestDeltas: a known value that comes in the texts of several events is hidden, however the text and the stream are cut.
func TestDeltas(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"Zx9QvT2mKw7Lp4Rn", "aaaabaaaacaaaa", "\"q\\u/o\nte", "text_delta", "cn\"ry\\7Q 2x%9+p/4V&8<W=n#d"} {
		s := scrub.New(testKey, nil)
		s.AddSecret("API_KEY", value)
		for size := 1; size <= len(value)+2; size++ {
			if !long && size > 3 && size%4 != 0 && size < len(value) {
				continue
			}
			for _, between := range []string{"", "event: ping\ndata: {\"type\": \"ping\"}\n\n", ": comment\n\n"} {
				text := "the key is " + value + ", " + value + "."
				var stream strings.Builder
				for len(text) > 0 {
					n := min(size, len(text))
					stream.WriteString(delta(text[:n]) + between)
					text = text[n:]
				}
				checkDeltas(t, s, stream.String(), value)
			}
		}
	}
}

func checkDeltas(t *testing.T, s *scrub.Scrubber, in, value string) {
	t.Helper()
	out := s.String(in)
	want := "the key is " + placeholder.FindString(s.String(value)) + ", " + placeholder.FindString(s.String(value)) + "."
	got := textOf(out)
	plain := regexpForm.ReplaceAllString(got, "_") // the parts may have been escaped
	if plain != want {
		t.Fatalf("%q\nbecame %q:\n%q, want %q", in, out, got, want)
	}
	if strings.Count(out, "data: ") != strings.Count(in, "data: ") {
		t.Errorf("events are missing from %q", out)
	}
	for _, n := range []int{1, 7, 100} {
		if streamed := stream(t, s, in, n); streamed != out {
			t.Fatalf("in pieces of %d: %q\nas a whole %q", n, streamed, out)
		}
	}
	if back := textOf(string(s.Reveal([]byte(out)))); back != textOf(in) {
		t.Errorf("%q comes back, want %q", back, textOf(in))
	}
}

// TestDeltasThatOnlyLookAlike: strings that end as a value begins stay as they are where no event goes on with it.
func TestDeltasThatOnlyLookAlike(t *testing.T) {
	s := scrub.New(testKey, nil)
	s.AddSecret("API_KEY", "Zx9QvT2mKw7Lp4Rn")
	var far strings.Builder
	for range 12 {
		far.WriteString(delta("other"))
	}
	for _, in := range []string{
		delta("Zx9QvT2m") + delta("something else"),
		delta("Zx9QvT2m") + "not a field of an event\n\n" + delta("Kw7Lp4Rn"),
		delta("Zx9QvT2m") + far.String() + delta("Kw7Lp4Rn"),
		delta("Zx9QvT2m") + strings.Repeat(": "+strings.Repeat("c", 1000)+"\n", 20) + delta("Kw7Lp4Rn"),
		"{\"a\":\"Zx9QvT2m\"}\n\ndata: {\"b\":\"Kw7Lp4Rn\"}\n\n", // no stream of events
	} {
		if out := s.String(in); out != in {
			t.Errorf("%q became %q", in, out)
		}
		if got := stream(t, s, in, 5); got != in {
			t.Errorf("as a stream: %q", got)
		}
	}
}

// TestDeltasHeldIsBounded: events that go on with a value forever hold no more back than anything else does.
func TestDeltasHeldIsBounded(t *testing.T) {
	s := scrub.New(testKey, nil)
	s.AddSecret("API_KEY", strings.Repeat("ab", 400)+"c")
	var out strings.Builder
	w := s.Writer(&out)
	var in strings.Builder
	for range 600 {
		in.WriteString(delta("ab"))
		fmt.Fprint(w, delta("ab"))
		if w.Held() > 17<<10 {
			t.Fatalf("%d bytes are held", w.Held())
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if whole := s.String(in.String()); whole != out.String() {
		t.Error("the stream differs from the whole")
	}
}

// eventParts are parts of which streams are drawn in which values come in pieces, and what looks like it.
var eventParts = []string{
	delta("Zx9QvT2m"), delta("Kw7Lp4Rn"), delta("Z"), delta("x9QvT2mKw7Lp4Rn"), delta("a Zx9"), delta("QvT2mKw7Lp4Rn b"), delta(""), delta("other"),
	delta("Zx9QvT2mKw7Lp4Rn"), "event: ping\ndata: {\"type\": \"ping\"}\n\n", ": c\n\n", "data: [DONE]\n\n", "data: {\"text\":\"Z", "x9QvT2mKw7Lp4Rn\"}}",
	"\n", "\r\n", `"}}`, `":"`, `\"`, `\u005a`, "data: ", "{", "junk\n",
}

// TestEventsAnySplit: however a stream of events is cut, the same comes out.
func TestEventsAnySplit(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn", "B_KEY=Kw7Lp4Rnab"}})
	rapid.Check(t, func(t *rapid.T) {
		text := "data: {}\n\n" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(eventParts), 0, 10).Draw(t, "parts"), "")
		whole := s.String(text)
		var out strings.Builder
		w := s.Writer(&out)
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			fmt.Fprint(w, rest[:n])
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != whole {
			t.Fatalf("%q\n  whole %q\nin parts %q", text, whole, out.String())
		}
	})
}

func FuzzEvents(f *testing.F) {
	for i := range eventParts {
		f.Add([]byte("data: {}\n\n"+eventParts[i]+eventParts[(i+1)%len(eventParts)]), i)
	}
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn", `B_KEY=q"u\o`}})
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		whole, _ := s.Bytes(b)
		if got := stream(t, s, string(b), max(1, n%64)); got != string(whole) {
			t.Fatalf("%q\n  whole %q\nin parts %q", b, whole, got)
		}
		s.Reveal(whole)
	})
}
