//go:build daemon

package daemon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Places of what the tests start; TestMain sets them.
var (
	tapedeck string // the command
	python   = "/usr/bin/python3"
	modules  string // node_modules with ws
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "daemon-test")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	tapedeck = filepath.Join(dir, "tapedeck")
	build := exec.Command("go", "build", "-o", tapedeck, "github.com/tapedeck-dev/tapedeck/cmd/tapedeck")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	if p := os.Getenv("TAPEDECK_PYTHON"); p != "" {
		python = p
	}
	if modules = os.Getenv("TAPEDECK_WS"); modules == "" {
		if err := installWS(dir); err != nil {
			fmt.Fprintf(os.Stderr, "install ws: %v\n", err)
			return 1
		}
	}
	return m.Run()
}

// installWS installs what npm/package-lock.json names.
func installWS(dir string) error {
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		b, err := os.ReadFile(filepath.Join("npm", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	modules = filepath.Join(dir, "node_modules")
	out, err := exec.Command("npm", "--prefix", dir, "ci", "--ignore-scripts", "--no-audit", "--no-fund").CombinedOutput()
	if err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
}

// A server is one tapedeck serve.
type server struct {
	t    *testing.T
	home string // of everything that is its own
	args []string
	cmd  *exec.Cmd
	log  *bytes.Buffer // its stderr; to be read when it has ended
	end  chan struct{} // closed when it has ended
	err  error         // how; to be read after end

	// What it says about itself.
	URL       string `json:"url"`
	Socket    string `json:"socket"`
	Data      string `json:"data"`
	TokenFile string `json:"token_file"`
	HostFile  string `json:"host_token_file"`
}

// serve starts a daemon with more arguments; HOME in one stands for its own directory.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	home, err := os.MkdirTemp("", "d") // short: a socket's path is at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, home: home}
	if !strings.Contains(strings.Join(args, " "), "--socket") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	s.args = append([]string{"serve", "--json", "--data", "HOME/state/data"}, args...)
	for i := range s.args {
		s.args[i] = strings.ReplaceAll(s.args[i], "HOME", home)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			lines := strings.Split(s.log.String(), "\n")
			t.Logf("the end of the daemon's log:\n%s", strings.Join(lines[max(0, len(lines)-15):], "\n"))
		}
		os.RemoveAll(home)
	})
	for _, dir := range []string{"state", "run"} {
		must(t, os.Mkdir(filepath.Join(home, dir), 0o700))
	}
	s.start()
	return s
}

// start starts it, for the first time or again.
func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(tapedeck, s.args...)
	s.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Join(s.home, "run"), "HOME="+s.home)
	s.log, s.end = new(bytes.Buffer), make(chan struct{})
	s.cmd.Stderr = s.log
	stdout, err := s.cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, s.cmd.Start())
	lines := bufio.NewReader(stdout)
	line, readErr := lines.ReadBytes('\n')
	var once sync.Once
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		s.err = s.cmd.Wait()
		once.Do(func() { close(s.end) })
	}()
	if readErr != nil || json.Unmarshal(line, s) != nil {
		<-s.end
		s.t.Fatalf("serve did not start: %q, %v, %v\n%s", line, readErr, s.err, s.log)
	}
}

// again starts it once more at the address that it had.
func (s *server) again() {
	s.t.Helper()
	for i, arg := range s.args {
		if arg == "127.0.0.1:0" {
			s.args[i] = strings.TrimSuffix(strings.TrimPrefix(s.URL, "ws://"), "/")
		}
	}
	s.start()
}

func (s *server) kill() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	<-s.end
}

// stop ends it in good order and checks that it did so.
func (s *server) stop() {
	s.t.Helper()
	must(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.end:
	case <-time.After(30 * time.Second):
		s.t.Fatal("serve does not stop")
	}
	if s.err != nil {
		s.t.Errorf("serve ended with %v", s.err)
	}
	for _, file := range []string{s.TokenFile, s.HostFile, s.Socket} {
		if file == "" {
			continue
		}
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			s.t.Errorf("%s is left: %v", file, err)
		}
	}
}

// token is the text of a token's file, "" where there is none.
func (s *server) token(file string) string {
	s.t.Helper()
	if file == "" {
		return ""
	}
	info, err := os.Stat(file)
	must(s.t, err)
	if info.Mode().Perm() != 0o600 {
		s.t.Errorf("%s has mode %v", file, info.Mode())
	}
	b, err := os.ReadFile(file)
	must(s.t, err)
	return strings.TrimSpace(string(b))
}

// place is where clients find it: its socket, where it has one.
func (s *server) place() string {
	if s.Socket != "" {
		return "unix:" + s.Socket
	}
	return s.URL
}

// script is the command that runs a client.
func script(t *testing.T, file string, args ...string) *exec.Cmd {
	t.Helper()
	interpreter := python
	if filepath.Ext(file) == ".mjs" {
		interpreter = "node"
	}
	cmd := exec.Command(interpreter, append([]string{file}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "TAPEDECK_WS="+modules)
	return cmd
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
