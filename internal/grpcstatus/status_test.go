package grpcstatus_test

import (
	"encoding/json"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name, trailers string
		head           []tape.HeaderField
		want           string
		failed         bool
	}{
		{"no call", "", []tape.HeaderField{{Name: "Content-Type", Value: "text/plain"}}, "none", false},
		{"well", `[["Grpc-Status","0"]]`, nil, "OK (0)", false},
		{"behind the body", `[["Grpc-Message","no such thing"],["Grpc-Status","5"]]`, nil, "NOT_FOUND (5): no such thing", true},
		{"in the head", "", []tape.HeaderField{{Name: "grpc-status", Value: "16"}, {Name: "grpc-message", Value: "who%20are you?"}},
			"UNAUTHENTICATED (16): who are you?", true},
		{"behind the body before the head", `[["grpc-status","13"]]`, []tape.HeaderField{{Name: "Grpc-Status", Value: "0"}}, "INTERNAL (13)", true},
		{"text in other letters", `[["Grpc-Status","3"],["Grpc-Message","%E2%82%AC 100%25"]]`, nil, "INVALID_ARGUMENT (3): € 100%", true},
		{"a plus is no space", `[["Grpc-Status","3"],["Grpc-Message","1+1"]]`, nil, "INVALID_ARGUMENT (3): 1+1", true},
		{"encoded by nobody", `[["Grpc-Status","8"],["Grpc-Message","at 100%, no more"]]`, nil, "RESOURCE_EXHAUSTED (8): at 100%, no more", true},
		{"a code of no list", `[["Grpc-Status","99"]]`, nil, "grpc-status 99", true},
		{"a message alone", `[["Grpc-Message","lost"]]`, nil, "none", false},
		{"no list of fields", `{"Grpc-Status":"5"}`, nil, "none", false},
	} {
		k := &tape.HTTPExchange{Exchange: tape.Exchange{Status: 200, ResponseHeaders: tt.head}}
		if tt.trailers != "" {
			k.Extra = []tape.Field{{Name: "response_trailers", Value: json.RawMessage(tt.trailers)}}
		}
		if s := grpcstatus.Of(k); s.String() != tt.want || s.Failed() != tt.failed {
			t.Errorf("%s: %v, failed %v; want %q", tt.name, s, s.Failed(), tt.want)
		}
	}
	if s := grpcstatus.Of(&tape.FileDelete{}); s != (grpcstatus.Status{}) {
		t.Errorf("a record that holds no exchange has a status: %v", s)
	}
}
