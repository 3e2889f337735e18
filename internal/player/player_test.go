package player

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

func TestHarmless(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain\r\n\x1b[1mbold", "plain\r\n\x1b[1mbold"},
		{"a\x1b[cb\x1b[>cc\x1b[6nd\x1b[?6ne\x1bZf\x05g", "abcdefg"},
		{"a\x1b]11;?\x07b\x1b]4;1;?\x1b\\c\x1b]52;c;aGk=\x1b\\d", "abcd"},
		{"\x1b]2;title\x1b\\a\x1b]11;#fff\x07b", "\x1b]2;title\x1b\\a\x1b]11;#fff\x07b"},
		{"\x1bP$qm\x1b\\a\x1bP+q544e\x1b\\b", "ab"},
		{"\x1b[?2026$pa\x1b[>qb\x1b[?uc\x1b[!pd", "abc\x1b[!pd"},
		{"\x1b[?4ma\x1b[>4;2mb", "a\x1b[>4;2mb"},
		{"\x1b[18ta\x1b[22;0tb\x1b[8;5;5tc", "a\x1b[22;0tbc"},
		{"\x1b[5ia\x1b[4i", "a"},
		{"\x1b[\x056nab", "ab"},
		{"wörld 🎉", "wörld 🎉"},
		{"open\x1b[1", "open\x1b[1"},
	} {
		for cut := range len(c.in) + 1 {
			var b bytes.Buffer
			h := newHarmless(&b)
			h.Write([]byte(c.in[:cut]))
			h.Write([]byte(c.in[cut:]))
			h.flush()
			if b.String() != c.want {
				t.Errorf("%q cut at %d: %q, want %q", c.in, cut, b.String(), c.want)
			}
		}
	}
}

// A plain text is not held back: a prompt without a newline is seen at once.
func TestHarmlessHoldsNothing(t *testing.T) {
	var b bytes.Buffer
	h := newHarmless(&b)
	for _, s := range []string{"$ ", "a\r\n", "\x1b[0m", "\x07", "ä"} {
		b.Reset()
		if h.Write([]byte(s)); b.String() != s {
			t.Errorf("%q: %q came", s, b.String())
		}
	}
}

func TestKeys(t *testing.T) {
	for in, want := range map[string][]Key{
		" .q": {Pause, Step, Quit}, "\x1b[C\x1b[D\x1bOC": {Forward, Back, Forward}, "+=-": {Faster, Faster, Slower},
		"\x1b[?62;22c": nil, "\x1b]11;rgb:ff/q/+\x07 ": {Pause}, "\x1bP>|q+q\x1b\\.": {Step}, "\x1b": nil, "\x1b[": nil, "xyz": nil, "\x03": {Quit},
	} {
		if got := Keys([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

// session is a cassette of the chunks, one a second from 1 s on, with a marker at 2.5 s.
func session(t *testing.T, chunks ...string) *cassette.Reader {
	t.Helper()
	dir := t.TempDir()
	var now time.Duration
	r, err := cassette.Create(dir, &cassette.CreateOptions{ResolutionMS: 1, FrameEvery: -1, Clock: func() time.Duration { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range chunks {
		now = time.Duration(i+1) * time.Second
		r.Output([]byte(c))
		if i == 1 {
			now += 500 * time.Millisecond
			r.ServiceEvent(json.RawMessage(`{"type":"marker"}`))
		}
	}
	if _, err := r.Finish(&cassette.Final{}); err != nil {
		t.Fatal(err)
	}
	out, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}

// screenplay notes when what was written, in a bubble of synctest.
type screenplay struct {
	start time.Time
	b     strings.Builder
}

func (s *screenplay) Write(p []byte) (int, error) {
	text := strings.NewReplacer(clearing, "<clear>", syncBegin, "", syncEnd, "").Replace(string(p))
	fmt.Fprintf(&s.b, "%v %s|", time.Since(s.start), text)
	return len(p), nil
}

func TestPlay(t *testing.T) {
	r := session(t, "a", "b", "c", "d", "e")
	for _, c := range []struct {
		name  string
		o     Options
		typed string // "2.5s +" is a key and when, one a comma
		want  string
	}{
		{"as it was", Options{}, "", "1s a|2s b|3s c|4s d|5s e|"},
		{"fast", Options{Speed: 4}, "", "250ms a|500ms b|750ms c|1s d|1.25s e|"},
		{"at once", Options{Speed: math.Inf(1)}, "", "0s a|0s b|0s c|0s d|0s e|"},
		{"from", Options{From: 2500 * time.Millisecond}, "", "0s ab|500ms c|1.5s d|2.5s e|"},
		{"idle", Options{MaxIdle: 100 * time.Millisecond}, "", "100ms a|200ms b|300ms c|400ms d|500ms e|"},
		{"quit", Options{}, "2.5s q", "1s a|2s b|"},
		{"pause", Options{}, "1.5s  ,3.5s  ", "1s a|4s b|5s c|6s d|7s e|"},
		{"step", Options{}, "1.5s .,2s .,3s  ", "1s a|1.5s b|2s c|4s d|5s e|"},
		{"faster", Options{}, "1.5s +", "1s a|1.75s b|2.25s c|2.75s d|3.25s e|"},
		{"slower", Options{}, "4.5s -", "1s a|2s b|3s c|4s d|5.5s e|"},
		{"back", Options{}, "2.5s \x1b[D", "1s a|2s b|2.5s <clear>|3.5s a|4.5s b|5.5s c|6.5s d|7.5s e|"},
		{"forward", Options{}, "500ms \x1b[C", "500ms abcde|"},
		{"marker", Options{}, "500ms ]", "500ms ab|1s c|2s d|3s e|"},
		{"to the start", Options{}, "2.5s \x1b[H,3s q", "1s a|2s b|2.5s <clear>|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := make(chan Key, 4)
				s := &screenplay{start: time.Now()}
				for _, k := range strings.Split(c.typed, ",") {
					when, key, ok := strings.Cut(k, " ")
					if !ok {
						continue
					}
					d, err := time.ParseDuration(when)
					if err != nil {
						t.Fatal(err)
					}
					go func() {
						time.Sleep(d)
						for _, k := range Keys([]byte(key)) {
							keys <- k
						}
					}()
				}
				c.o.Keys = keys
				if err := Play(t.Context(), r, s, &c.o); err != nil {
					t.Fatal(err)
				}
				if got := s.b.String(); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		})
	}
}

func TestPlayEnds(t *testing.T) {
	r := session(t, "a", "b")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Play(ctx, r, &screenplay{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
