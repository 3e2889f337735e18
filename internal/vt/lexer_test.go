package vt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// lex lists the tokens of a stream that is written in pieces of n bytes, texts that follow each other joined.
func lex(stream []byte, n int) []string {
	var out []string
	var text []byte
	var from, to int64
	flush := func() {
		if text != nil {
			out = append(out, fmt.Sprintf("text %d-%d %q", from, to, text))
		}
		text = nil
	}
	l := NewLexer(func(t *Token) {
		if t.Kind == TokenText && text != nil && t.Start == to {
			text, to = append(text, t.Data...), t.End
			return
		}
		flush()
		if t.Kind == TokenText {
			text, from, to = slices.Clone(t.Data), t.Start, t.End
			return
		}
		out = append(out, fmt.Sprintf("%d %d-%d %q@%d %q%q%v%q", t.Kind, t.Start, t.End, t.Data, t.DataStart, t.Prefix, t.Inter, t.Params, t.Final))
	})
	for p := range slices.Chunk(stream, n) {
		l.Write(p)
	}
	flush()
	return out
}

func TestLexer(t *testing.T) {
	in := "ab日\x1b[1;;3:4mc\x1b]0;t\x00i\a\x1bP1$qm\x1b\\\xff\xc2\x9b?2h\x1b(0\r\x1b[1\n2H\x1b_x\xc2\x9cend\x1b[31"
	want := []string{
		`text 0-5 "ab日"`,
		`4 5-14 ""@0 '\x00'""[1 -1 3 4]'m'`,
		`text 14-15 "c"`,
		`5 15-23 "0;t\x00i"@17 '\x00'""[]'\x00'`,
		`6 23-30 "m"@28 '\x00'"$"[1]'q'`,
		`3 29-31 ""@0 '\x00'""[]'\\'`,
		`text 31-32 "\xff"`,
		`4 32-37 ""@0 '?'""[2]'h'`,
		`3 37-40 ""@0 '\x00'"("[]'0'`,
		`2 40-41 ""@0 '\x00'""[]'\r'`,
		`2 44-45 ""@0 '\x00'""[]'\n'`,
		`4 41-47 ""@0 '\x00'""[12]'H'`,
		`9 47-52 "x"@49 '\x00'""[]'\x00'`,
		`text 52-55 "end"`,
	}
	for _, n := range []int{len(in), 1, 3} {
		if got := lex([]byte(in), n); !slices.Equal(got, want) {
			t.Errorf("in pieces of %d:\n%s\nwant\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// checkTokens says where tokens do not name the bytes of the stream.
func checkTokens(t *testing.T, stream []byte) {
	whole := lex(stream, max(len(stream), 1))
	for _, n := range []int{1, 5} {
		if got := lex(stream, n); !slices.Equal(got, whole) {
			t.Fatalf("%q in pieces of %d:\n%s\nwhole:\n%s", stream, n, strings.Join(got, "\n"), strings.Join(whole, "\n"))
		}
	}
	last := int64(0)
	l := NewLexer(func(tok *Token) {
		if tok.End <= last && tok.Kind != TokenControl || tok.Start >= tok.End || tok.End > int64(len(stream)) {
			t.Fatalf("%q: token %+v behind %d", stream, tok, last)
		}
		last = tok.End
		if end := tok.DataStart + int64(len(tok.Data)); tok.Data != nil && !bytes.Equal(stream[tok.DataStart:end], tok.Data) {
			t.Fatalf("%q: the data of %+v is not what stands there", stream, tok)
		}
	})
	l.Write(stream)
}

func TestLexerInPieces(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 4))
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		checkTokens(t, data)
		checkTokens(t, script(data))
	}
}

func FuzzLexer(f *testing.F) {
	f.Add([]byte("a\x1b[1;2mb\x1b]0;x\xc2\x9cc\xe6\x97\xa5"))
	f.Fuzz(func(t *testing.T, data []byte) { checkTokens(t, data) })
}
