package wsframe_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

// told is one event for people.
func told(e *wsframe.Event) string {
	s := fmt.Sprintf("%d %d %q", e.Kind, e.Opcode, e.Payload)
	if len(e.Payload) > 200 {
		s = fmt.Sprintf("%d %d %d bytes of %x", e.Kind, e.Opcode, len(e.Payload), e.Payload[:8])
	}
	switch {
	case e.Kind == wsframe.Closing:
		s = fmt.Sprintf("closing %d %q", e.Code, e.Reason)
	case e.Kind == wsframe.Broken:
		s = "broken: " + e.Why
	case e.Lost != "":
		s = "lost: " + e.Lost
	case e.Cut:
		s += " cut"
	}
	if e.Masked {
		s += " masked"
	}
	return s
}

// feed gives b in pieces of so many bytes, and returns what was told, the place of each in b before it.
func feed(t testing.TB, o *wsframe.Options, b []byte, piece int) (out []string) {
	t.Helper()
	a := wsframe.NewAssembler(o)
	for at := 0; at < len(b); at += piece {
		part := b[at:min(at+piece, len(b))]
		if err := a.Feed(part, func(e *wsframe.Event) error {
			if e.End < 0 || e.End > len(part) {
				t.Fatalf("end %d of %d", e.End, len(part))
			}
			out = append(out, fmt.Sprint(at+e.End, " ", told(e)))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if e := a.Finish(); e != nil {
		out = append(out, told(e))
	}
	return out
}

// frames are frames, masked where key is not zero.
func frame(opcode byte, fin bool, payload string, key [4]byte) []byte {
	return wsframe.AppendFrame(nil, wsframe.Header{Fin: fin, Opcode: opcode, Masked: key != [4]byte{}, Key: key}, []byte(payload))
}

var someKey = [4]byte{1, 2, 0xF3, 4}

func TestAssembler(t *testing.T) {
	none := [4]byte{}
	long := strings.Repeat("x", 70_000)
	rsv := frame(wsframe.Text, true, "a", none)
	rsv[0] |= 0x40
	rsv3 := frame(wsframe.Text, true, "a", none)
	rsv3[0] |= 0x10
	for _, tt := range []struct {
		name  string
		bytes [][]byte
		want  []string
	}{
		{"text", [][]byte{frame(wsframe.Text, true, "hello", none)}, []string{`7 0 1 "hello"`}},
		{"masked", [][]byte{frame(wsframe.Text, true, "hello there, you", someKey)}, []string{`22 0 1 "hello there, you" masked`}},
		{"empty", [][]byte{frame(wsframe.Text, true, "", none), frame(wsframe.Binary, true, "", someKey)}, []string{`2 0 1 ""`, `8 0 2 "" masked`}},
		{"16 bits", [][]byte{frame(wsframe.Binary, true, long[:300], someKey)}, []string{"308 0 2 300 bytes of 7878787878787878 masked"}},
		{"64 bits", [][]byte{frame(wsframe.Binary, true, long, none)}, []string{"70010 0 2 70000 bytes of 7878787878787878"}},
		{
			"fragments, and control frames between them",
			[][]byte{
				frame(wsframe.Text, false, "he", none), frame(wsframe.Ping, true, "p", none), frame(wsframe.Continuation, false, "", none),
				frame(wsframe.Pong, true, "", none), frame(wsframe.Continuation, true, "llo", none), frame(wsframe.Text, true, "next", none),
			},
			[]string{`7 1 9 "p"`, `11 1 10 ""`, `16 0 1 "hello"`, `22 0 1 "next"`},
		},
		{"close", [][]byte{frame(wsframe.Close, true, "\x0f\xa0bye", none), frame(wsframe.Text, true, "late", none)}, []string{`7 closing 4000 "bye"`}},
		{"close without a code", [][]byte{frame(wsframe.Close, true, "", someKey)}, []string{`6 closing 1005 "" masked`}},
		{"half a code", [][]byte{frame(wsframe.Close, true, "x", none)}, []string{"3 broken: a close frame has half a code"}},
		{"reserved bit", [][]byte{rsv}, []string{"2 broken: a frame has a reserved bit that nobody agreed on"}},
		{"reserved bit 3", [][]byte{rsv3}, []string{"2 broken: a frame has a reserved bit that nobody agreed on"}},
		{"reserved opcode", [][]byte{frame(3, true, "", none)}, []string{"2 broken: a frame has the reserved opcode 3"}},
		{"fragmented control", [][]byte{frame(wsframe.Ping, false, "", none)}, []string{"2 broken: a control frame is fragmented"}},
		{"long control", [][]byte{frame(wsframe.Ping, true, long[:126], none)}, []string{"4 broken: a control frame has 126 bytes"}},
		{"continues nothing", [][]byte{frame(wsframe.Continuation, true, "x", none)}, []string{"2 broken: a fragment continues no message"}},
		{
			"message within a message", [][]byte{frame(wsframe.Text, false, "x", none), frame(wsframe.Text, true, "y", none)},
			[]string{"5 broken: a message begins in the middle of another"},
		},
		{"63 bits", [][]byte{{0x81, 127, 0x80, 0, 0, 0, 0, 0, 0, 0}}, []string{"10 broken: a frame's length is beyond 63 bits"}},
		{"cut", [][]byte{frame(wsframe.Text, true, "hello", none)[:5]}, []string{`0 1 "hel" cut`}},
		{"cut between fragments", [][]byte{frame(wsframe.Text, false, "hello", none)}, []string{`0 1 "hello" cut`}},
		{"cut in a header", [][]byte{frame(wsframe.Text, true, "hello", none)[:1]}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := bytes.Join(tt.bytes, nil)
			for _, piece := range []int{1, 2, 3, 7, 1000, len(b)} {
				if got := feed(t, nil, b, piece); fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("in pieces of %d: got %q, want %q", piece, got, tt.want)
				}
			}
		})
	}
}

// A packer compresses messages as one side of a connection does.
type packer struct {
	b     bytes.Buffer
	w     *flate.Writer
	fresh bool
}

func newPacker(t testing.TB, fresh bool) *packer {
	t.Helper()
	p := &packer{fresh: fresh}
	w, err := flate.NewWriter(&p.b, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	p.w = w
	return p
}

// pack is a message without the end that the extension takes off.
func (p *packer) pack(s string) []byte {
	p.b.Reset()
	if p.fresh {
		p.w.Reset(&p.b)
	}
	_, _ = p.w.Write([]byte(s)) // memory
	_ = p.w.Flush()
	return bytes.Clone(bytes.TrimSuffix(p.b.Bytes(), []byte("\x00\x00\xff\xff")))
}

func packedFrame(fin bool, opcode byte, b []byte, key [4]byte) []byte {
	return wsframe.AppendFrame(nil, wsframe.Header{Fin: fin, RSV1: opcode != wsframe.Continuation, Opcode: opcode, Masked: key != [4]byte{}, Key: key}, b)
}

func TestDeflate(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		p := newPacker(t, fresh)
		var b []byte
		var want []string
		say := func(opcode byte, s string, pieces int) {
			packed := p.pack(s)
			step := len(packed)/pieces + 1
			for at, op := 0, opcode; at < len(packed); at, op = at+step, wsframe.Continuation {
				end := min(at+step, len(packed))
				b = append(b, packedFrame(end == len(packed), op, packed[at:end], someKey)...)
				if end < len(packed) {
					b = append(b, frame(wsframe.Ping, true, "", someKey)...)
					want = append(want, fmt.Sprint(len(b), ` 1 9 "" masked`))
				}
			}
			want = append(want, fmt.Sprint(len(b), " ", told(&wsframe.Event{Data: wsframe.Data{Opcode: int(opcode), Payload: []byte(s), Masked: true}})))
		}
		say(wsframe.Text, "hello", 1)
		say(wsframe.Text, "hello hello", 3)
		say(wsframe.Binary, strings.Repeat("some words ", 9000), 2)
		say(wsframe.Text, "", 1)
		b = append(b, frame(wsframe.Text, true, "plain", someKey)...)
		want = append(want, fmt.Sprint(len(b), ` 0 1 "plain" masked`))
		for i := range 50 {
			say(wsframe.Text, strings.Repeat(fmt.Sprint("line ", i%7, ", "), 300), 1+i%3)
		}
		for _, piece := range []int{1, 5, 4096, len(b)} {
			if got := feed(t, &wsframe.Options{Deflate: true, Fresh: fresh}, b, piece); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("fresh %t, in pieces of %d:\n%q\nwant\n%q", fresh, piece, got, want)
			}
		}
	}
}

// TestLastBlock: a sender may end a message with a block that says it is the last.
func TestLastBlock(t *testing.T) {
	// RFC 7692, 7.2.3.4: "Hello" in a last block, and an empty one behind it.
	b := packedFrame(true, wsframe.Text, []byte("\xf3\x48\xcd\xc9\xc9\x07\x00\x00"), [4]byte{})
	if got := feed(t, &wsframe.Options{Deflate: true}, b, 3); fmt.Sprint(got) != `[10 0 1 "Hello"]` {
		t.Errorf("got %q", got)
	}
}

// TestTooLong: a message beyond the limit is lost, those after it are not, though they refer to it.
func TestTooLong(t *testing.T) {
	const limit = 100_000
	long := strings.Repeat("some words that come again ", 9000) // 243,000 bytes
	p := newPacker(t, false)
	var b []byte
	for _, s := range []string{"short", long, long[:300]} {
		b = append(b, packedFrame(true, wsframe.Text, p.pack(s), someKey)...)
	}
	for _, s := range []string{"short", long, long[:300]} {
		b = append(b, frame(wsframe.Text, true, s, someKey)...)
	}
	for _, piece := range []int{100, 5000, len(b)} {
		got := feed(t, &wsframe.Options{Deflate: true, Limit: limit}, b, piece)
		said := strings.Join(got, "\n")
		if len(got) != 6 || strings.Count(said, "lost: a message is longer than 100000 bytes") != 2 ||
			strings.Count(said, `"short"`) != 2 || strings.Count(said, "300 bytes of 736f6d65") != 2 {
			t.Errorf("in pieces of %d:\n%s", piece, said)
		}
	}
}

// TestTooLongPacked: what is too long before it is inflated blinds what refers to it, and nothing else.
func TestTooLongPacked(t *testing.T) {
	p := newPacker(t, false)
	var b []byte
	for i := range 3 {
		s := fmt.Sprint("message ", i)
		if i == 1 {
			s = string(noise(5000))
		}
		b = append(b, packedFrame(true, wsframe.Text, p.pack(s), someKey)...)
	}
	b = append(b, frame(wsframe.Text, true, "plain", someKey)...)
	said := strings.Join(feed(t, &wsframe.Options{Deflate: true, Limit: 1000}, b, 64), "\n")
	for _, want := range []string{`"message 0"`, "lost: a message is longer", "lost: it is compressed with what", `"plain"`} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not told:\n%s", want, said)
		}
	}
}

// noise does not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// TestBomb: a small message that inflates to a gigabyte takes neither its memory nor the messages after it.
func TestBomb(t *testing.T) {
	p := newPacker(t, false)
	packed := p.pack(strings.Repeat("\x00", 200<<20))
	after := p.pack("after")
	b := append(packedFrame(true, wsframe.Binary, packed, someKey), packedFrame(true, wsframe.Text, after, someKey)...)
	var got []string
	allocated := testing.AllocsPerRun(1, func() { got = feed(t, &wsframe.Options{Deflate: true, Limit: 1 << 20}, b, len(b)) })
	if len(got) != 2 || !strings.Contains(got[0], "lost") || !strings.Contains(got[1], `"after"`) {
		t.Errorf("got %q", got)
	}
	if allocated > 200 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestBrokenDeflate: what does not inflate is told with its bytes.
func TestBrokenDeflate(t *testing.T) {
	b := packedFrame(true, wsframe.Text, []byte("\xff\xff\xff"), [4]byte{})
	var raw []byte
	if err := wsframe.NewAssembler(&wsframe.Options{Deflate: true}).Feed(b, func(e *wsframe.Event) error {
		if e.Kind != wsframe.Broken {
			t.Errorf("got %s", told(e))
		}
		raw = bytes.Clone(e.Payload)
		return nil
	}); err != nil || !bytes.Equal(raw, b) {
		t.Errorf("got %x, %v", raw, err)
	}
}

func TestParseDeflate(t *testing.T) {
	for field, want := range map[string]wsframe.Deflate{
		"":                   {},
		"x-other":            {},
		"permessage-deflate": {On: true},
		"Permessage-Deflate; client_max_window_bits":               {On: true, ClientBits: true},
		"x; a=b, permessage-deflate ; server_no_context_takeover ": {On: true, ServerFresh: true},
		"permessage-deflate;client_no_context_takeover; server_max_window_bits=10, permessage-deflate; server_no_context_takeover": {
			On: true, ClientFresh: true, ServerBits: true,
		},
	} {
		if got := wsframe.ParseDeflate([]string{field}); got != want {
			t.Errorf("%q: got %+v, want %+v", field, got, want)
		}
	}
}

// FuzzAssembler holds it to be the same whatever the pieces that bytes come in.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte("\x81\x05hello\x89\x00\x01\x02ab\x80\x01c"), uint8(1), false)
	f.Add(packedFrame(true, wsframe.Text, []byte("\xf3\x48\xcd\xc9\xc9\x07\x00"), someKey), uint8(3), true)
	f.Add(append(frame(wsframe.Text, false, "he", someKey), frame(wsframe.Close, true, "\x03\xe8", someKey)...), uint8(5), false)
	f.Fuzz(func(t *testing.T, b []byte, piece uint8, deflate bool) {
		o := &wsframe.Options{Deflate: deflate, Limit: 1 << 16}
		whole := feed(t, o, b, max(len(b), 1))
		if got := feed(t, o, b, max(int(piece), 1)); fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Errorf("in pieces of %d:\n%q\nwhole:\n%q", piece, got, whole)
		}
	})
}

// FuzzHeader holds that what is written is read again.
func FuzzHeader(f *testing.F) {
	f.Add([]byte("\x81\xfe\x01\x00abcd"))
	f.Add([]byte("\x02\x7f\x00\x00\x00\x01\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := wsframe.ParseHeader(b)
		if n == 0 || err != nil {
			return
		}
		again, m, err := wsframe.ParseHeader(h.Append(nil))
		if err != nil || m > n || again != h {
			t.Errorf("%x: %+v, again %+v, %v", b[:n], h, again, err)
		}
	})
}

// BenchmarkFeed reads masked messages of 1 KiB.
func BenchmarkFeed(b *testing.B) {
	stream := bytes.Repeat(frame(wsframe.Text, true, string(noise(1024)), someKey), 16)
	a := wsframe.NewAssembler(nil)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Feed(stream, func(*wsframe.Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
