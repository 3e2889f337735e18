//go:build unix

package tty_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// worst are texts that cost as much as can be: full rows that look as if they went on in the next ones.
func worst(size int) map[string][]byte {
	all := map[string][]byte{}
	for name, cell := range map[string]func(rng *rand.Rand) string{
		"random":     func(rng *rand.Rand) string { return randomText(rng, 80, alnum) },
		"keys":       func(rng *rand.Rand) string { return "sk-proj-" + randomText(rng, 72, alnum) },
		"short keys": func(rng *rand.Rand) string { return strings.Repeat("ghp_"+randomText(rng, 36, alnum), 2) },
		"keys and words": func(rng *rand.Rand) string {
			return "sk-proj-" + randomText(rng, 24, alnum) + " TOKEN=" + randomText(rng, 41, alnum)
		},
		"names": func(rng *rand.Rand) string {
			return "TOKEN=" + randomText(rng, 34, alnum) + " KEY=" + randomText(rng, 35, alnum)
		},
		"beginnings only": func(*rand.Rand) string { return strings.Repeat("sk-proj-", 10) },
	} {
		rng := rand.New(rand.NewPCG(1, 7))
		var b bytes.Buffer
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "\x1b[%d;1H%s", i%24+1, cell(rng))
		}
		all[name] = b.Bytes()[:size]
		var one bytes.Buffer
		for i := 0; one.Len() < size; i++ {
			if i%500 == 0 {
				for y := range 24 {
					fmt.Fprintf(&one, "\x1b[%d;1H%s", y+1, cell(rng))
				}
			}
			fmt.Fprintf(&one, "\x1b[%d;%dH%c", rng.IntN(24)+1, rng.IntN(80)+1, alnum[rng.IntN(len(alnum))])
		}
		all[name+", one by one"] = one.Bytes()[:size]
	}
	return all
}

// TestWorkIsBounded counts what looking at rows costs in the worst texts.
func TestWorkIsBounded(t *testing.T) {
	const size = 64 << 10
	for name, text := range worst(size) {
		if os.Getenv("TAPEDECK_LONG") == "" && name != "random, one by one" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const most = 2 * (8<<20 + size*24) // of all rounds: each may cost half of the one before
			if n := tty.MaskShownWork(text, fixed); n > most+1<<20 {
				t.Errorf("%d for %d bytes, want %d at most", n, size, most)
			}
		})
	}
}

// BenchmarkMaskShown masks the worst texts.
func BenchmarkMaskShown(b *testing.B) {
	for name, text := range worst(1 << 18) {
		b.Run(name, func(b *testing.B) {
			defer perCPU(b, len(text), used())
			for b.Loop() {
				tty.MaskShown(bytes.Clone(text), nil, fixed)
			}
		})
	}
}
