package exchange_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestEndToEnd(t *testing.T) {
	in := headers("Connection", "close, X-Mine", "X-Mine", "1", "Proxy-Authentication-Info", "a", "Http2-Settings", "b",
		"Transfer-Encoding", "chunked", "Alt-Svc", "h3", "X-Kept", "2")
	if diff := cmp.Diff(headers("X-Kept", "2"), exchange.EndToEnd(in)); diff != "" {
		t.Error(diff)
	}
	if in.Get("X-Mine") != "1" || exchange.EndToEnd(nil) == nil {
		t.Error("the header itself was changed, or there is none")
	}
}

func TestFittingLength(t *testing.T) {
	tests := []struct {
		name, method, header string
		status               int
		cut                  string
		total, want          int64
	}{
		{"fits", "GET", "5", 200, "", 5, 5},
		{"scrubbed to another length", "GET", "5", 200, "", 9, -1},
		{"cut before its end", "GET", "50", 200, "reset", 5, 50},
		{"none", "GET", "", 200, "", 5, -1},
		{"nonsense", "GET", "-5", 200, "", 5, -1},
		{"head", "HEAD", "50", 200, "", 0, 50},
		{"not modified", "GET", "50", 304, "", 0, 50},
		{"no content", "GET", "", 204, "", 0, 0},
		{"head that names none", "HEAD", "", 200, "", 0, -1},
	}
	for _, tt := range tests {
		h := http.Header{}
		if tt.header != "" {
			h.Set("Content-Length", tt.header)
		}
		got := exchange.FittingLength(h, &tape.Exchange{Method: tt.method, Status: tt.status, Error: tt.cut}, tt.total)
		if got != tt.want || (got <= 0) != (h.Get("Content-Length") == "") {
			t.Errorf("%s: %d and %q, want %d", tt.name, got, h.Get("Content-Length"), tt.want)
		}
	}
}
