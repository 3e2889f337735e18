package network

import (
	"io"
	"net/http"
	"slices"
	"testing"
)

// A short answer that told no length gets none on its way through the recorder, though its head, its only chunk and its end
// may leave in one write.
func TestAShortAnswerWithoutALengthHasNoneOnReplay(t *testing.T) {
	for _, proto := range []string{"h1", "h2"} {
		t.Run(proto, func(t *testing.T) {
			g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "hi")
				http.NewResponseController(w).Flush()
			}))
			checkFraming(t, "record", g, proto)
			checkFraming(t, "replay", replayRig(g, nil), proto)
		})
	}
}

func checkFraming(t *testing.T, name string, g *rig, proto string) {
	t.Helper()
	res, err := g.client(proto).Post("https://api.example.com/short", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || string(b) != "hi" {
		t.Errorf("%s: %q, %v", name, b, err)
	}
	var coding []string
	if proto == "h1" {
		coding = []string{"chunked"}
	}
	if res.ContentLength != -1 || res.Header["Content-Length"] != nil || !slices.Equal(res.TransferEncoding, coding) {
		t.Errorf("%s: length %d, %v, coding %v", name, res.ContentLength, res.Header, res.TransferEncoding)
	}
}
