package deck_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jail/jailtest"
)

// programVar names the program that the test binary plays, when it is run inside the jail.
const programVar = "DECK_TEST_PROGRAM"

func TestMain(m *testing.M) {
	deck.Enter()
	if name := os.Getenv(programVar); name != "" {
		program, ok := programs[name]
		if !ok {
			fmt.Fprintln(os.Stderr, "no program", name)
			os.Exit(99)
		}
		syscall.Exit(program(os.Args[1:])) // at once: with the race detector os.Exit sleeps for a second
	}
	jailtest.OwnMounts()
	os.Exit(runTests(m))
}

// noRoots is no directory, where Go programs look for more roots than those of a file.
const noRoots = "/nonexistent"

// runTests runs the tests in a system that trusts nobody, with whom programs trust the recorder alone: to read the hundreds of roots of
// a real one takes longer than all that most of them do.
func runTests(m *testing.M) int {
	roots := filepath.Join(os.TempDir(), fmt.Sprintf("tapedeck-roots-%d", os.Getpid()))
	if err := os.WriteFile(roots, []byte("# none\n"), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.Remove(roots)
	os.Setenv("SSL_CERT_FILE", roots)
	os.Setenv("PATH", "/usr/bin:"+os.Getenv("PATH")) // before a version manager's shims, which start many programs for one
	debug.SetGCPercent(400)
	if signal.Ignored(syscall.SIGINT) { // as a shell has what it starts in the background, and what that records would too
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	}
	return m.Run()
}

// long has each test try every case that it knows, not a share of them.
var long = os.Getenv("TAPEDECK_LONG") != ""

// rare reports whether a case of a table is one of those that only the long form tries.
func rare(name string, names ...string) bool { return !long && slices.Contains(names, name) }

// often is how many times a test does again what may go another way: once, or n times in the long form.
func often(n int) int {
	if long {
		return n
	}
	return 1
}

// shortly is the patience of a replay with what will not come.
const shortly = 100 * time.Millisecond

// A bench is a work tree with a HOME and a configuration of its own, and an upstream.
type bench struct {
	t      *testing.T
	dir    string // the work tree
	home   string
	config string
	env    []string
	hosts  map[string]string

	unsealed bool     // what is recorded is left unsealed, for a test that edits it
	isolated bool     // scripts are recorded so
	realTime bool     // time and randomness are not recorded
	through  []string // what starts the programs; nothing for themselves
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if d := deck.Diagnose(); !d.Works {
		t.Skipf("no jail here: %+v", d.Checks)
	}
	return newBenchAnywhere(t)
}

// newBenchAnywhere needs no jail.
func newBenchAnywhere(t *testing.T) *bench {
	t.Helper()
	root := t.TempDir()
	b := &bench{t: t, dir: filepath.Join(root, "work"), home: filepath.Join(root, "home"), config: filepath.Join(root, "config")}
	for _, d := range []string{b.dir, b.home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "SSL_CERT_DIR=" + noRoots}
	return b
}

// upstream answers for host with h.
func (b *bench) upstream(host string, h http.HandlerFunc) *httptest.Server {
	srv := httptest.NewServer(h)
	b.t.Cleanup(srv.Close)
	if b.hosts == nil {
		b.hosts = make(map[string]string)
	}
	b.hosts[host] = srv.URL
	return srv
}

// ownProgram is the path of the program that is this one: of programs that are recorded. The race detector, which has nothing to look for in
// them, costs each start 75 ms of CPU: TAPEDECK_PROGRAMS may name this package's tests built without it.
func ownProgram(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Or(os.Getenv("TAPEDECK_PROGRAMS"), exe)
}

// self is the command line of one of programs.
func (b *bench) self(name string, args ...string) ([]string, []string) {
	b.t.Helper()
	exe := ownProgram(b.t)
	return slices.Concat(b.through, []string{exe}, args), append(b.env[:len(b.env):len(b.env)], programVar+"="+name)
}

// record records one of programs and returns its recording and what it printed.
func (b *bench) record(name string, args ...string) (*deck.Result, string) {
	b.t.Helper()
	argv, env := b.self(name, args...)
	var out bytes.Buffer
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, NoSeal: b.unsealed, RealTime: b.realTime,
		Streams: deck.Streams{Stdout: &out, Stderr: &out},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.holds(res.Recording.Dir)
	return res, out.String()
}

// holds fails the test unless the recording in dir verifies.
func (b *bench) holds(dir string) {
	b.t.Helper()
	if v, err := verified(dir); err != nil || len(v.Problems) > 0 || len(v.Notes) > 0 {
		b.t.Errorf("%+v, %v", v, err)
	}
}

// replay replays rec and returns the verdict and what the program printed.
func (b *bench) replay(rec *recording.Recording, o *deck.ReplayOptions) (*deck.Verdict, string) {
	b.t.Helper()
	if o == nil {
		o = new(deck.ReplayOptions)
	}
	var out bytes.Buffer
	o.ConfigDir, o.Stdout, o.Stderr = b.config, &out, &out
	if o.Env == nil {
		o.Env = b.env
	}
	v, err := deck.Replay(context.Background(), rec, o)
	if err != nil {
		b.t.Fatal(err)
	}
	if o.Out != "" {
		b.holds(o.Out)
	}
	return v, out.String()
}

// green fails the test unless v is faithful.
func (b *bench) green(v *deck.Verdict) {
	b.t.Helper()
	if !v.Faithful() || len(v.NotCompared) > 0 {
		var text bytes.Buffer
		v.WriteText(&text, nil)
		b.t.Fatalf("the replay diverged:\n%s", &text)
	}
}

// get fetches a URL and returns its body.
func get(url string) ([]byte, error) {
	res, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}
