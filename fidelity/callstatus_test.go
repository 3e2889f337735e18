package fidelity

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestCallStatus compares how gRPC calls ended, which their HTTP status and body do not tell, wherever it stands.
func TestCallStatus(t *testing.T) {
	trailing := func(status string) *tape.HTTPExchange {
		x := get("https://api.test/a/B", 1, 200)
		x.Extra = []tape.Field{{Name: "response_trailers", Value: json.RawMessage(`[["Grpc-Status","` + status + `"],["Grpc-Message","message of ` + status + `"]]`)}}
		return x
	}
	other := trailing("0")
	other.Extra[0].Value = json.RawMessage(`[["Grpc-Status","0"],["Grpc-Message","another"]]`)
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
		{"another message", other, 0},
	} {
		got := compareLanes(t, Semantic, []tape.Kind{trailing("0")}, []tape.Kind{tt.b}, nil)
		if len(got.Divergences) != tt.want || tt.want == 1 && got.Divergences[0].Category != "http_status" {
			t.Errorf("%s: %+v", tt.name, got.Divergences)
		}
	}
}

// TestCallStatusExplained: a verdict names the status and what the server said of it.
func TestCallStatusExplained(t *testing.T) {
	ended := func(fields string) tape.Kind {
		x := get("https://api.test/a/B", 1, 200)
		x.Extra = []tape.Field{{Name: "response_trailers", Value: json.RawMessage(fields)}}
		return x
	}
	got := compareLanes(t, Semantic, []tape.Kind{ended(`[["Grpc-Status","0"]]`)},
		[]tape.Kind{ended(`[["Grpc-Status","5"],["Grpc-Message","no such thing"]]`)}, nil)
	if len(got.Divergences) != 1 || !strings.Contains(got.Divergences[0].Message, `recorded "OK (0)", replay "NOT_FOUND (5): no such thing"`) {
		t.Errorf("%+v", got.Divergences)
	}
}

// TestCallStatusPairs: of equal calls those that ended alike compare with each other, for which was made first says nothing.
func TestCallStatusPairs(t *testing.T) {
	call := func(arrival uint64, status string) tape.Kind {
		x := get("https://api.test/a/B", arrival, 200)
		x.Extra = []tape.Field{{Name: "response_trailers", Value: json.RawMessage(`[["Grpc-Status","` + status + `"]]`)}}
		return x
	}
	got := compareLanes(t, Semantic, []tape.Kind{call(1, "0"), call(2, "5")}, []tape.Kind{call(1, "5"), call(2, "0")}, nil)
	if len(got.Divergences) != 0 {
		t.Errorf("%+v", got.Divergences)
	}
}
