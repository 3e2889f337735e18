package mcp_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// The messages of an answer are heard whatever carries them, and nothing of an answer that says it is something else.
func TestEachLine(t *testing.T) {
	t.Parallel()
	const one = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, tt := range []struct {
		kind, body string
		want       []string
	}{
		{"application/json; charset=utf-8", one + "\n", []string{one}},
		{"text/event-stream", ": hello\n\nevent: message\ndata: " + one + "\n\ndata: log\n\ndata: " + one + "\n\n", []string{one, one}},
		{"text/plain", one, nil},
		{"", one, nil},
	} {
		res := &http.Response{Header: http.Header{"Content-Type": {tt.kind}}, Body: io.NopCloser(strings.NewReader(tt.body))}
		var got []string
		err := mcp.EachLine(http.MethodPost, res, func(line []byte) error {
			got = append(got, strings.TrimSpace(string(line)))
			return nil
		})
		if !errors.Is(err, io.EOF) || !slices.Equal(got, tt.want) {
			t.Errorf("of %s %q, %v", tt.kind, got, err)
		}
	}
}
