package verify

import (
	"strings"
	"testing"
)

func TestSameOutput(t *testing.T) {
	const ph, other = "td_api-key_0123456789ab", "td_token_ba9876543210"
	long := strings.Repeat("some text\r\n", 20_000)
	for _, test := range []struct {
		name, taped, shown string
		at                 int64
	}{
		{"nothing", "", "", -1},
		{"equal", long, long, -1},
		{"a secret", "key " + ph + " end", "key ************ end", -1},
		{"a secret at the end", "key " + ph, "key ************", -1},
		{"two secrets", ph + " and " + other + "\n", "******** and *********\n", -1},
		{"two in a row", ph + other + "\n", "*****************\n", -1},
		{"one at the end of what is looked for", ph + long[:22] + other + "\n", "****" + long[:22] + "****\n", -1},
		{"one at the very end of it", ph + long[:23] + other + "\n", "****" + long[:23] + "****\n", -1},
		{"one behind it", ph + long[:24] + other + "\n", "****" + long[:24] + "****\n", -1},
		{"far behind", long + ph + long, long + "*****" + long, -1},
		{"that only the screen shows", "pass\bword", "****\b****", -1},
		{"no ASCII", "pä", "*é", -1},
		{"another byte", "one", "ome", 1},
		{"cut", "one", "on", 2},
		{"longer", "one", "one!", 3},
		{"another byte behind a secret", ph + " one, and much more than that", "**** ome, and much more than that", 0},
		{"far behind and other", long + "x", long + "y", int64(len(long))},
		{"text printed that looks like a placeholder", ph + "x", ph + "x", -1},
	} {
		if at, err := sameOutput(strings.NewReader(test.taped), strings.NewReader(test.shown)); at != test.at || err != nil {
			t.Errorf("%s: %d, %v, want %d", test.name, at, err, test.at)
		}
	}
}
