package deck_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// asker is a bench with an upstream that says what it was asked for, and a server's program.
func asker(t *testing.T) (b *bench, path string) {
	b = newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "here is ", r.URL.Path) })
	return b, b.server("fetch-server")
}

// askers counts the exchanges, and the conversations, of a recording by who asked.
func askers(t *testing.T, rec *recording.Recording) (exchanges, talks map[uint64]int) {
	t.Helper()
	exchanges, talks = make(map[uint64]int), make(map[uint64]int)
	for _, k := range kinds(t, rec) {
		switch k.(type) {
		case *tape.HTTPExchange:
			exchanges[tape.OriginOf(k)]++
		case *tape.MCPOpen:
			talks[tape.OriginOf(k)]++
		}
	}
	return exchanges, talks
}

// noted fails the test unless v is faithful and says this.
func (b *bench) noted(v *deck.Verdict, note string) {
	b.t.Helper()
	b.green(v)
	if !strings.Contains(strings.Join(v.Notes, "\n"), note) {
		b.t.Errorf("notes %q, want %q", v.Notes, note)
	}
}

// TestServerFetches: what a server fetches itself is not asked for on a replay; what the program fetches is, be it the same.
func TestServerFetches(t *testing.T) {
	b, path := asker(t)
	const url = "http://api.example.com/page"
	fetch := tool(0, "fetch", map[string]any{"Name": url})
	res, out := b.recordScene(&mcpScene{Fetch: url, Servers: []mcpStart{{Argv: []string{path, "fetch"}}}, Calls: []mcpCall{fetch}})
	exchanges, _ := askers(t, res.Recording)
	if strings.Count(out, "here is /page") != 2 || exchanges[0] != 1 || exchanges[1] != 1 {
		t.Fatalf("exchanges %v; the client said:\n%s", exchanges, out)
	}
	b.gone(path)
	v, again := b.replay(res.Recording, nil)
	if again != out {
		t.Errorf("the client said\n%s\nand on the replay\n%s", out, again)
	}
	b.noted(v, "1 exchange of MCP servers, which did not run")
	argv, _ := b.self("mcp-client", b.scene(&mcpScene{Servers: []mcpStart{{Argv: []string{path, "fetch"}}}, Calls: []mcpCall{fetch}}))
	if v, _ = b.replay(res.Recording, &deck.ReplayOptions{Argv: argv}); v.Faithful() || len(v.Unasked) != 1 {
		t.Errorf("what the program did not fetch again: %+v", v.Unasked)
	}
}

// TestServerListens: a WebSocket of a server is not asked for on a replay.
func TestServerListens(t *testing.T) {
	b, path := asker(t)
	b.upstream("live.example.com", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, said, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, append([]byte("heard "), said...)) != nil {
				return
			}
		}
	})
	res, out := b.recordScene(&mcpScene{
		Servers: []mcpStart{{Argv: []string{path, "live"}}}, Calls: []mcpCall{tool(0, "listen", map[string]any{"Name": "ws://live.example.com/"})},
	})
	by := uint64(0)
	for _, k := range kinds(t, res.Recording) {
		if open, ok := k.(*tape.WSOpen); ok {
			by = tape.OriginOf(open)
		}
	}
	if !strings.Contains(out, "heard hello") || by != 1 {
		t.Fatalf("opened by %d; the client said:\n%s", by, out)
	}
	b.gone(path)
	v, again := b.replay(res.Recording, nil)
	if again != out {
		t.Errorf("the client said\n%s\nand on the replay\n%s", out, again)
	}
	b.noted(v, "1 exchange of MCP servers, which did not run")
}

// TestProgramFetchesWhatAServerDid: the answer that a server got is not the program's.
func TestProgramFetchesWhatAServerDid(t *testing.T) {
	b, path := asker(t)
	const url = "http://api.example.com/page"
	s := &mcpScene{Servers: []mcpStart{{Argv: []string{path, "fetch"}}}, Calls: []mcpCall{tool(0, "fetch", map[string]any{"Name": url})}}
	res, _ := b.recordScene(s)
	s.Fetch = url
	argv, _ := b.self("mcp-client", b.scene(s))
	if v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv}); v.Faithful() || len(v.Refused) != 1 {
		t.Errorf("what nobody recorded for the program: %+v", v.Refused)
	}
}

// TestServerOfAServer: on a replay nobody waits for what a server asked another one, whose changes are made all the same.
func TestServerOfAServer(t *testing.T) {
	b, path := asker(t)
	made := filepath.Join(b.dir, "made-inside")
	res, out := b.recordScene(&mcpScene{
		Servers: []mcpStart{{Argv: []string{path, "outer"}}, {Argv: []string{path, "other"}}},
		Calls:   []mcpCall{tool(0, "ask", map[string]any{"Name": "http://api.example.com/inside"}), tool(1, "echo", nil)},
		Look:    made,
	})
	exchanges, talks := askers(t, res.Recording)
	if !strings.Contains(out, "here is /inside") || len(exchanges) != 1 || exchanges[0] != 0 || talks[0] != 2 || talks[1] != 1 {
		t.Fatalf("exchanges %v, conversations %v; the client said:\n%s", exchanges, talks, out)
	}
	b.gone(path)
	took := time.Hour
	for range 3 { // a busy machine takes as long as such a wait, but not each time
		if err := os.Remove(made); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		v, again := b.replay(res.Recording, nil)
		took = min(took, time.Since(before))
		if again != out {
			t.Errorf("the client said\n%s\nand on the replay\n%s", out, again)
		}
		b.noted(v, "1 exchange and 1 conversation of MCP servers, which did not run")
		if took < 2*time.Second {
			return
		}
	}
	t.Errorf("the fastest of three replays took %v", took)
}
