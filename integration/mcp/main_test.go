//go:build mcp

package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

func TestMain(m *testing.M) { run.Main(m) }

// modules is the folder that TAPEDECK_MCP names, absolute.
func modules(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TAPEDECK_MCP")
	if dir == "" {
		t.Skip("TAPEDECK_MCP names no node_modules folder; integration/install-npm.sh fills one")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A server is one that a scene starts or reaches.
type server struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Stderr  string            `json:"stderr,omitempty"`
	URL     string            `json:"url,omitempty"`
	SSE     string            `json:"sse,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Limit   int               `json:"limit,omitempty"` // of a line, in bytes; 0 is the SDK's own
	Fails   bool              `json:"fails,omitempty"` // no session comes about
}

// A step is what a scene does next.
type step struct {
	Server   string         `json:"server,omitempty"`
	Tool     string         `json:"tool,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
	Method   string         `json:"method,omitempty"`
	Params   map[string]any `json:"params,omitempty"`
	Progress bool           `json:"progress,omitempty"`
	Count    bool           `json:"count,omitempty"`   // print how many there are alone
	Size     bool           `json:"size,omitempty"`    // print how long the texts are and how they end
	Timeout  int            `json:"timeout,omitempty"` // in milliseconds
	Fails    bool           `json:"fails,omitempty"`   // there is no result
	All      []step         `json:"all,omitempty"`
	InOrder  bool           `json:"inOrder,omitempty"`
}

// A scene is what clients/scene.mjs plays.
type scene struct {
	Servers map[string]server `json:"servers"`
	Steps   []step            `json:"steps"`
	Leave   bool              `json:"leave,omitempty"` // end without closing the servers
}

// A stage is a box with servers that can be taken away.
type stage struct {
	*run.Box
	t       *testing.T
	node    string
	modules string // of the client, which stays
	servers string // a folder through which the servers are started
	player  string
}

// newStage puts the client into b, and a way to the servers.
func newStage(t *testing.T, b *run.Box) *stage {
	t.Helper()
	s := &stage{Box: b, t: t, node: run.Tool(t, "node"), modules: modules(t)}
	s.servers = filepath.Join(filepath.Dir(b.Home), "servers")
	if err := os.Symlink(s.modules, s.servers); err != nil {
		t.Fatal(err)
	}
	player, err := os.ReadFile("clients/scene.mjs")
	if err != nil {
		t.Fatal(err)
	}
	s.player = filepath.Join(b.Home, "scene.mjs")
	b.WriteFile(s.player, string(player))
	b.Setenv("TAPEDECK_MCP", s.modules)
	return s
}

// stdio is a server from npm that a client starts.
func (s *stage) stdio(name string, args ...string) server {
	script := filepath.Join(s.servers, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	return server{Command: s.node, Args: append([]string{script}, args...)}
}

// argv plays sc.
func (s *stage) argv(sc *scene) []string {
	s.t.Helper()
	b, err := json.Marshal(sc)
	if err != nil {
		s.t.Fatal(err)
	}
	return []string{s.node, s.player, string(b)}
}

// uninstall takes the servers away.
func (s *stage) uninstall() {
	s.t.Helper()
	if err := os.Remove(s.servers); err != nil {
		s.t.Fatal(err)
	}
}

// recorded records sc, wants it to end well, and takes the servers away.
func (s *stage) recorded(sc *scene) run.Result {
	s.t.Helper()
	res := s.Record(nil, s.argv(sc)...)
	if res.Status != 0 {
		s.t.Fatalf("record: %v", res)
	}
	if res := s.Verify(); res.Status != 0 {
		s.t.Errorf("verify: %v", res)
	}
	s.uninstall()
	return res
}

// green replays the recording and wants the output of res again.
func (s *stage) green(res run.Result) {
	s.t.Helper()
	report, again := s.Replay()
	if again.Status != 0 || report == nil || len(report.Divergences) > 0 {
		s.t.Fatalf("replay: %v", again)
	}
	if report.Crossed == nil || *report.Crossed != 0 {
		s.t.Errorf("crossed: %v, want 0", report.Crossed)
	}
	if left := s.Running(); len(left) > 0 {
		s.t.Errorf("still running: %q", left)
	}
}

// removeFile removes what a recorded run wrote.
func removeFile(path string) error { return os.Remove(path) }
