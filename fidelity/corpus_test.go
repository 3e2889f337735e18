package fidelity

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/corpus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestCorpusPairs compares the pairs of the corpus in every mode.
func TestCorpusPairs(t *testing.T) {
	cases, err := corpus.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for _, mode := range []Mode{ByteIdentical, Semantic, Outcome, PhaseAware} {
			t.Run(c.Name+"/"+mode.String(), func(t *testing.T) {
				recorded, replay, err := c.Pair()
				if err != nil {
					t.Fatal(err)
				}
				var want []Category
				for _, name := range strings.Split(strings.TrimPrefix(c.Get(mode.String()), "none"), ", ") {
					if name != "" {
						want = append(want, Category(name))
					}
				}
				r := mustCompare(t, mode, readTape(t, recorded), readTape(t, replay))
				if d := cmp.Diff(want, categories(r)); d != "" {
					t.Errorf("-want +got\n%s", d)
				}
				if good := strings.HasPrefix(c.Name, "good-"); mode == Semantic && good != (len(want) == 0) {
					t.Errorf("it is called %s and differs in %v", c.Name, want)
				}
			})
		}
	}
}

func readTape(t *testing.T, b []byte) Records {
	t.Helper()
	r, err := tape.NewReader(bytes.NewReader(b), "case")
	if err != nil {
		t.Fatal(err)
	}
	return r.Records()
}
