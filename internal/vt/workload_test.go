package vt_test

import (
	"fmt"
	"math/rand/v2"
)

// A workload is a kind of output that programs write to terminals, to measure with: the same bytes every time.
type workload struct {
	name string
	one  func(b []byte, r *rand.Rand) []byte // appends some of it
}

// workloads are those that the screen model is measured on.
var workloads = []workload{
	{"plain log", logLine},
	{"heavy SGR", colours},
	{"cursor-addressed redraw", redraw},
	{"wide text", wide},
}

// output returns n bytes of it, cut where they end.
func (k *workload) output(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 0, n+64<<10)
	for len(b) < n {
		b = k.one(b, r)
	}
	return b[:n]
}

var words = []string{
	"request", "served", "in", "ms", "from", "cache", "GET", "/api/v1/items", "user", "session", "opened", "closed", "error:",
	"connection", "reset", "by", "peer", "retrying", "worker", "job", "queue", "drained", "ok", "200", "404", "compiling",
}

func phrase(b []byte, r *rand.Rand, n int) []byte {
	for range n {
		b = append(b, ' ')
		b = append(b, words[r.IntN(len(words))]...)
	}
	return b
}

// logLine is a line of a server's log; one in ten is longer than the screen is wide.
func logLine(b []byte, r *rand.Rand) []byte {
	b = fmt.Appendf(b, "2026-03-%02dT%02d:%02d:%02d.%03dZ INFO", 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000))
	n := 4 + r.IntN(5)
	if r.IntN(10) == 0 {
		n += 12
	}
	return append(phrase(b, r, n), '\r', '\n')
}

// colours is a line in which every word has a colour of its own: of 8, of 256, of 16 million, bold or underlined.
func colours(b []byte, r *rand.Rand) []byte {
	for range 8 {
		switch r.IntN(4) {
		case 0:
			b = fmt.Appendf(b, "\x1b[%d;%dm", r.IntN(2), 30+r.IntN(8))
		case 1:
			b = fmt.Appendf(b, "\x1b[38;5;%dm\x1b[48;5;%dm", r.IntN(256), r.IntN(256))
		case 2:
			b = fmt.Appendf(b, "\x1b[38;2;%d;%d;%dm", r.IntN(256), r.IntN(256), r.IntN(256))
		case 3:
			b = fmt.Appendf(b, "\x1b[4:3;58:2::%d:%d:%dm", r.IntN(256), r.IntN(256), r.IntN(256))
		}
		b = append(phrase(b, r, 1), "\x1b[0m"...)
	}
	return append(b, '\r', '\n')
}

// redraw is one frame of a program that draws the whole screen over and over.
func redraw(b []byte, r *rand.Rand) []byte {
	b = append(b, "\x1b[?25l\x1b[H"...)
	for row := 1; row <= 24; row++ {
		b = fmt.Appendf(b, "\x1b[%d;1H%5d", row, r.IntN(32768))
		for col := 8; col < 70; col += 12 {
			b = fmt.Appendf(b, "\x1b[%d;%dH\x1b[%dm%5.1f", row, col, 31+r.IntN(7), r.Float64()*100)
			b = append(b, "\x1b[39m%"...)
		}
		b = append(b, "\x1b[K"...)
	}
	return append(b, "\x1b[24;80H\x1b[?25h"...)
}

var scripts = []string{"日本語のテキスト", "中文字符测试", "한국어텍스트", "全角ＡＢＣ", "😀😃👍", "e\u0301a\u0300", "👩‍👩‍👧"}

// wide is a line of characters that take two columns, with some of one and some clusters.
func wide(b []byte, r *rand.Rand) []byte {
	for range 6 {
		i := r.IntN(4)
		if r.IntN(8) == 0 {
			i = 4 + r.IntN(3)
		}
		b = append(b, scripts[i]...)
		if r.IntN(3) == 0 {
			b = phrase(b, r, 1)
		}
	}
	return append(b, '\r', '\n')
}
