package exchange

import (
	"net/http"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestAreFields(t *testing.T) {
	fields := []tape.HeaderField{{Name: "A", Value: "1"}, {Name: "B", Value: "x"}, {Name: "B", Value: "y"}}
	for name, tt := range map[string]struct {
		h    http.Header
		want bool
	}{
		"same":        {http.Header{"A": {"1"}, "B": {"x", "y"}}, true},
		"other value": {http.Header{"A": {"2"}, "B": {"x", "y"}}, false},
		"other order": {http.Header{"A": {"1"}, "B": {"y", "x"}}, false},
		"one less":    {http.Header{"A": {"1"}, "B": {"x"}}, false},
		"one gone":    {http.Header{"B": {"x", "y"}}, false},
		"one more":    {http.Header{"A": {"1"}, "B": {"x", "y", "z"}}, false},
		"another":     {http.Header{"A": {"1"}, "B": {"x", "y"}, "C": {""}}, false},
		"none":        {nil, false},
	} {
		if got := areFields(tt.h, fields); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	unsorted := []tape.HeaderField{{Name: "A", Value: "x"}, {Name: "B"}, {Name: "A", Value: "y"}}
	if !areFields(nil, nil) || areFields(HeaderOf(unsorted), unsorted) {
		t.Error("no fields, or fields in no order")
	}
}
