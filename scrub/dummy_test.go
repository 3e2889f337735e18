package scrub

import (
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
)

// TestDummiesTellCases: of a dummy with letters, hex and percent-encoding in upper case are other texts than those in lower case.
func TestDummiesTellCases(t *testing.T) {
	for _, shape := range []string{":12:a0", ":12:A0", ":8:aA0", "sk-:11:aA0", ":9:a!"} {
		for seed := range 2000 {
			d := dummy(strconv.Itoa(seed), shape)
			if !strings.ContainsAny(hex.EncodeToString([]byte(d)), "abcdef") {
				t.Fatalf("hex of %q (%s) has no letter", d, shape)
			}
		}
	}
}
