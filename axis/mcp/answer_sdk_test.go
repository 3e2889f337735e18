package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// unasked is what a client does with a server that tells what nobody asked for.
func (c *webClient) unasked(sampling bool) (seen []string) {
	if sampling {
		seen = append(seen, c.call("sample", "hello", nil))
	}
	seen = append(seen, c.call("progress", "way", "token-9"))
	for range 3 {
		seen = append(seen, next(c.t, c.progress))
	}
	seen = append(seen, strings.Join(c.tools(), " "), c.call("grow", "new", nil))
	next(c.t, c.changed)
	return append(seen, strings.Join(c.tools(), " "))
}

// servedWeb answers lenient clients over HTTP from what g recorded.
func servedWeb(t *testing.T, g *webRig) *httptest.Server {
	t.Helper()
	b, err := mcp.NewBook(g.reader().Records(), g.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Named("")
	if err != nil {
		t.Fatal(err)
	}
	return serveWeb(t, s)
}

// serveWeb answers lenient clients over HTTP.
func serveWeb(t *testing.T, s *mcp.Served) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler(t.Context(), &mcp.ServeOptions{}))
	mux.Handle("/sse", s.SSEHandler(t.Context(), &mcp.ServeOptions{}))
	return serveHere(t, mux)
}

// What a server said to one client of the Go SDK, asked and unasked, another client hears that speaks by whatever transport and version.
func TestServedOverHTTP(t *testing.T) {
	t.Parallel()
	server := webServer()
	for _, recordedBy := range []string{"2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"} {
		modern := recordedBy == "2026-07-28"
		server = webServer()
		one := func(*http.Request) *sdk.Server { return server }
		var h http.Handler = sdk.NewStreamableHTTPHandler(one, &sdk.StreamableHTTPOptions{Stateless: modern})
		if recordedBy == overSSE {
			h = sdk.NewSSEHandler(one, nil)
		}
		g := recordWeb(t, h)
		c := g.connect(recordedBy)
		want := c.unasked(!modern)
		c.close()
		g.end()
		for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
			if !modern && version == "2026-07-28" {
				continue // it begins with initialize on such a tape, as the version before does
			}
			t.Run(fmt.Sprintf("%s as %s", recordedBy, version), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := servedWeb(t, g)
					c := connect(t, transportTo(srv.URL, version, srv.Client()), version)
					defer c.close()
					if got := c.unasked(!modern); !slices.Equal(got, want) {
						t.Errorf("heard\n%q, recorded\n%q", got, want)
					}
				})
			})
		}
	}
}
