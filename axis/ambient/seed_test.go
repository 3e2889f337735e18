package ambient_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
)

// TestSeedText reads what it wrote, and nothing else.
func TestSeedText(t *testing.T) {
	t.Parallel()
	was := ambient.NewSeed([]byte("a key"), "an id")
	text, err := was.MarshalText()
	var again ambient.Seed
	if err != nil || again.UnmarshalText(text) != nil || again != was {
		t.Errorf("%q: %v, again %v", text, err, again)
	}
	for _, other := range []string{"", "\n", string(text[1:]), string(text[:64]), string(text) + "\n", strings.Repeat("g", 64) + "\n"} {
		if err := again.UnmarshalText([]byte(other)); !errors.Is(err, ambient.ErrSeed) || again != was {
			t.Errorf("%q: %v", other, err)
		}
	}
}
