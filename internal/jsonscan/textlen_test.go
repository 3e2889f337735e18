package jsonscan

import (
	"testing"
)

func TestTextLen(t *testing.T) {
	for in, want := range map[string]int{`""`: 2, `"a",1`: 3, `"\"":1`: 4, `"\\"x"`: 4, `"no end`: 7, `"no end\`: 8, `"`: 1} {
		if got := TextLen([]byte(in)); got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
}
