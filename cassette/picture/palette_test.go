package picture

import (
	"math/rand/v2"
	"testing"
)

func TestColoursAreExactWhereTheyFit(t *testing.T) {
	solid := map[RGB]bool{}
	rng := rand.New(rand.NewPCG(5, 6))
	for len(solid) < maxColors {
		solid[RGB(rng.Uint32()&0xFFFFFF)] = true
	}
	p := newPalette(map[pair]bool{}, solid)
	for c := range solid {
		if got := p.colors[p.of(c)-1]; got != c {
			t.Fatalf("%v is drawn as %v", c, got)
		}
	}
	for len(solid) < 5000 {
		solid[RGB(rng.Uint32()&0xFFFFFF)] = true
	}
	p = newPalette(map[pair]bool{{0xFF0000, 0}: true}, solid)
	if len(p.colors) > maxColors {
		t.Fatalf("%d colours, expected at most %d", len(p.colors), maxColors)
	}
	for c := range solid {
		if got := p.colors[p.of(c)-1]; distance(c, got) > 40*40*9 {
			t.Fatalf("%v is drawn as %v", c, got)
		}
	}
}

// Few colours have letters with soft edges, many have them with hard ones, before a colour is given up.
func TestShadesGoBeforeColours(t *testing.T) {
	for n, steps := range map[int]int{20: 8, 60: 4, 120: 2} {
		pairs := map[pair]bool{}
		for i := range n {
			pairs[pair{RGB(i*0x20503 + 0x404040), RGB(i)}] = true
		}
		if p := newPalette(pairs, nil); p.steps != steps {
			t.Errorf("%d pairs have %d steps, expected %d", n, p.steps, steps)
		}
	}
}
