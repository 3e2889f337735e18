package exchange_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestAnAnswerThatTheProgramLeaves wants the replay of a recorded answer to stand on the tape as it was recorded, however
// much of it the program waited for.
func TestAnAnswerThatTheProgramLeaves(t *testing.T) {
	long := []byte(strings.Repeat("what the model says, ", 1000)) // longer than what stands in a record
	for name, tt := range map[string]struct {
		cut      string // of the recording
		encoding string
		chunks   [][]byte
	}{
		"whole":             {chunks: [][]byte{[]byte("first "), []byte("last")}},
		"long":              {chunks: [][]byte{long, long}},
		"compressed":        {encoding: "gzip", chunks: encode(t, "gzip", "first last")},
		"left then as well": {cut: "the program ended the request", chunks: [][]byte{[]byte("first "), []byte("sec")}},
	} {
		t.Run(name, func(t *testing.T) {
			recording := newRig(t, exchange.TapOptions{})
			header := headers("Content-Type", "text/plain")
			if tt.encoding != "" {
				header.Set("Content-Encoding", tt.encoding)
			}
			recording.answer(recording.begin("https://a.example/x", "question"), tt.cut, header, tt.chunks...)
			want, _ := recording.last()
			for left := range len(tt.chunks) + 1 {
				replay := newRig(t, exchange.TapOptions{Replay: true})
				o := replay.begin("https://a.example/x", "question")
				take(t, o, book(t, recording))
				replay.answer(o, "the program ended the request", header, tt.chunks[:left]...)
				got, _ := replay.last()
				if diff := cmp.Diff(recording.kept(want), replay.kept(got)); diff != "" {
					t.Errorf("left after %d chunks (-recorded +replayed):\n%s", left, diff)
				}
				if text := replay.partText(); text != "" {
					t.Errorf("a part is left: %q", text)
				}
			}
		})
	}
}

// TestALeftAnswerThatIsDamaged wants what could not be given to stay an error.
func TestALeftAnswerThatIsDamaged(t *testing.T) {
	recording := newRig(t, exchange.TapOptions{})
	recording.answer(recording.begin("https://a.example/x", "question"), "", headers(), []byte("answer"))
	replay := newRig(t, exchange.TapOptions{Replay: true})
	o := replay.begin("https://a.example/x", "question")
	b := book(t, recording)
	b.Damage(take(t, o, b), errors.New("its blob is gone"))
	replay.answer(o, "recorded answer is damaged", headers())
	if got, _ := replay.last(); got.Error != "recorded answer is damaged" {
		t.Errorf("error %q", got.Error)
	}
}

// kept is what an exchange keeps of its answer: the error, the body, the chunks.
func (g *rig) kept(x *tape.Exchange) []any {
	g.t.Helper()
	return []any{x.Error, g.payload(x.Response), g.chunksOf(x)}
}

func book(t *testing.T, g *rig) *exchange.Book {
	t.Helper()
	b, err := exchange.NewBook(g.records(), classifier{}, g.store)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func take(t *testing.T, o *exchange.Open, b *exchange.Book) *exchange.Recorded {
	t.Helper()
	rec, ok := o.Take(b)
	if !ok {
		t.Fatal("the book has no answer")
	}
	return rec
}

// TestUsageOfACutAnswer wants the usage of a stream that the program left when it had all of the text and not yet the end
// of the encoding.
func TestUsageOfACutAnswer(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "Deflate", "br", "zstd"} {
		t.Run(coding, func(t *testing.T) {
			g := newRig(t, exchange.TapOptions{})
			o := g.begin("https://a.example/x", `{"model":"m","messages":[]}`)
			parts := encode(t, coding, `{"usage":{"n":1}}`, "")
			g.answer(o, "the program ended the request", headers("Content-Encoding", coding), parts[0])
			call, ok := g.kinds()[0].(*tape.LLMCall)
			if !ok || string(call.Usage) != `{"n":1}` {
				t.Errorf("%+v, want the usage", g.kinds()[0])
			}
		})
	}
}
