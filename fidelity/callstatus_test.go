package fidelity

import (
	"encoding/json"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestCallStatus compares how gRPC calls ended, which their HTTP status and body do not tell, wherever it stands.
func TestCallStatus(t *testing.T) {
	trailing := func(status string) *tape.HTTPExchange {
		x := get("https://api.test/a/B", 1, 200)
		x.Extra = []tape.Field{{Name: keyTrailers, Value: json.RawMessage(`[["Grpc-Status","` + status + `"]]`)}}
		return x
	}
	heading := get("https://api.test/a/B", 1, 200)
	heading.ResponseHeaders = []tape.HeaderField{{Name: "Grpc-Status", Value: "0"}}
	for _, tt := range []struct {
		name string
		b    tape.Kind
		want int
	}{
		{"the same", trailing("0"), 0},
		{"another", trailing("5"), 1},
		{"in the head", heading, 0},
	} {
		got := compareLanes(t, Semantic, []tape.Kind{trailing("0")}, []tape.Kind{tt.b}, nil)
		if len(got.Divergences) != tt.want || tt.want == 1 && got.Divergences[0].Category != HTTPStatus {
			t.Errorf("%s: %+v", tt.name, got.Divergences)
		}
	}
}
