package vt

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRepeatIsPrinting holds REP on screens in any state to what it stands for: the character printed so often.
func TestRepeatIsPrinting(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 9))
		rows, cols := 1+random.IntN(6), 1+random.IntN(9)
		before := script(randomBytes(random, 60))
		before = append(before, "\x18\x1b(B\x0f"...)
		n := 1 + random.IntN(rows*cols)
		char := []string{"a", "日", "ԱԲ", "é", "🏽", "🇯"}[random.IntN(6)]
		if char == "日" || char == "🏽" {
			n = max(1, n/2)
		}
		rep, printed := newRig(rows, cols, 5), newRig(rows, cols, 5)
		for _, r := range []*rig{rep, printed} {
			r.Write(before)
			r.Resize(rows, cols)
			r.Write([]byte(char))
		}
		was := *printed.Screen
		fmt.Fprintf(rep, "\x1b[%db", n)
		rep.check(t)
		if was.lastRune != 0 {
			for range n {
				printed.cluster = afterASCII
				printed.print(was.lastRune, was.lastFrom, was.lastTo)
			}
			printed.forget()
		}
		if was.left > 0 || was.right < cols-1 {
			continue
		}
		printed.m.pos = rep.m.pos
		a, b := rep.dump(), printed.dump()
		if a != b {
			t.Fatalf("seed %d: %q, then %q %d times\nREP:\n%s\nprinted:\n%s", seed, before, char, n, a, b)
		}
	}
}

func randomBytes(random *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// TestRepeatIsBounded counts the cells that 19 KB of REP write, on the largest screens.
func TestRepeatIsBounded(t *testing.T) {
	for _, size := range [][2]int{{64, 4096}, {4096, 64}} {
		for name, begin := range map[string]string{
			"plain": "a", "wide": "日", "coloured": "\x1b[44ma", "a region": "\x1b[2r\x1b[9;1Ha", "insert": "\x1b[4ha",
			"no wrap": "\x1b[?7la", "no wrap, insert": "\x1b[?7l\x1b[4ha", "alternate": "\x1b[?1049ha", "margins": "\x1b[?69h\x1b[2s\x1b[9;9Ha", "two columns": "\x1b[?69h\x1b[2;3s\x1b[9;2Ha",
		} {
			for _, rep := range []string{"\x1b[999999b", "a\x1b[4000b\x1b[9b"} {
				s := New(&Options{Rows: size[0], Cols: size[1], Origins: true})
				s.Write([]byte(begin))
				flood := strings.Repeat(rep, 19000/len(rep))
				s.Write([]byte(flood))
				if most := 8 * MaxSize * strings.Count(flood, "b"); s.drawn > most {
					t.Errorf("%d by %d, %s, %q: %d cells for %d bytes", size[0], size[1], name, rep, s.drawn, len(flood))
				}
			}
		}
	}
}
