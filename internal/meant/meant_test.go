package meant_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/meant"
)

func TestBy(t *testing.T) {
	keys := []string{"input_tokens", "delay_ms", "arguments", "contains", "clock", "main", "ms", "strip", "Größe"}
	for word, want := range map[string]string{
		"contain": "contains", "Kontains": "contains", "clok": "clock", "mian": "main", "ns": "ms", "große": "Größe",
		"input": "input_tokens", "args": "arguments", "delay": "delay_ms", // begin the same
		"strings": "strip", "weather": "", "": "", "clock": "",
		strings.Repeat("a", 1<<20): "",
	} {
		if got := meant.By(word, keys); got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
	if got := meant.By("cat", []string{"bat", "hat", "cut", "car"}); got != "cut" {
		t.Errorf("of equally near ones %q", got)
	}
}
