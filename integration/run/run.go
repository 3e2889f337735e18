package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// limit is how long one recording or replay may take.
const limit = 2 * time.Minute

// systemPath is where the programs are looked for. A version manager's own folders lie in the caller's HOME, which an
// unprivileged user cannot read.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// A Result is how a command ended.
type Result struct {
	Status         int
	Stdout, Stderr string
}

// A Box is one program's surroundings.
type Box struct {
	Home string // the program's HOME
	Work string // its working directory and work tree

	t         *testing.T
	tapedeck  string
	recording string
	env       []string
	as        account
}

// Each runs body in a fresh box as the caller, and when that is root in another one as an unprivileged user.
func Each(t *testing.T, body func(t *testing.T, b *Box)) {
	t.Helper()
	tapedeck := build(t)
	for _, as := range accounts() {
		t.Run(as.name, func(t *testing.T) {
			inBox(t, tapedeck, as, body)
		})
	}
}

// Once runs body in a fresh box as the caller alone.
func Once(t *testing.T, body func(t *testing.T, b *Box)) {
	t.Helper()
	inBox(t, build(t), accounts()[0], body)
}

// inBox runs body in a fresh box.
func inBox(t *testing.T, tapedeck string, as account, body func(t *testing.T, b *Box)) {
	t.Helper()
	b := newBox(t, tapedeck, as)
	if res := b.command(tapedeck, "doctor"); res.Status != 0 {
		t.Skipf("the jail does not work here:\n%s%s", res.Stdout, res.Stderr)
	}
	body(t, b)
}

func newBox(t *testing.T, tapedeck string, as account) *Box {
	t.Helper()
	top, err := os.MkdirTemp("", "tapedeck-box-") // outside t.TempDir, whose path is not readable by everyone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	b := &Box{
		Home: filepath.Join(top, "home"), Work: filepath.Join(top, "work"),
		t: t, tapedeck: tapedeck, recording: filepath.Join(top, "run.rec"), as: as,
	}
	b.env = []string{"PATH=" + systemPath, "HOME=" + b.Home, "TERM=xterm-256color"}
	b.mkdir(b.Home)
	b.mkdir(b.Work)
	if err := as.own(top); err != nil {
		t.Fatal(err)
	}
	return b
}

// Setenv adds a variable to the program's environment.
func (b *Box) Setenv(name, value string) { b.env = append(b.env, name+"="+value) }

// WriteFile puts a file below HOME or the work directory, which the box's user then owns.
func (b *Box) WriteFile(path, content string) {
	b.t.Helper()
	b.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	if err := b.as.own(path); err != nil {
		b.t.Fatal(err)
	}
}

func (b *Box) mkdir(path string) {
	b.t.Helper()
	if _, err := os.Stat(path); err == nil {
		return
	}
	b.mkdir(filepath.Dir(path)) // each is the user's own
	if err := os.Mkdir(path, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := b.as.own(path); err != nil {
		b.t.Fatal(err)
	}
}

// Record runs a program under `tapedeck record`; upstreams maps names to the URLs that answer for them. TAPEDECK_RECORD_WITH names
// another tapedeck to record with, an older one say, whose recordings must still replay.
func (b *Box) Record(upstreams map[string]string, argv ...string) Result {
	b.t.Helper()
	args := []string{"record", "-o", b.recording}
	for name, url := range upstreams {
		args = append(args, "--upstream", name+"="+url)
	}
	return b.command(cmp.Or(os.Getenv("TAPEDECK_RECORD_WITH"), b.tapedeck), append(append(args, "--"), argv...)...)
}

// Replay runs `tapedeck replay` on the recording, with another command line when one is given, and returns its report,
// nil when it gave none.
func (b *Box) Replay(argv ...string) (*fidelity.Report, Result) {
	b.t.Helper()
	args := []string{"replay", "--json", b.recording}
	if len(argv) > 0 {
		args = append(append(args, "--"), argv...)
	}
	res := b.command(b.tapedeck, args...)
	report := new(fidelity.Report)
	if err := json.Unmarshal([]byte(res.Stdout), report); err != nil {
		return nil, res
	}
	return report, res
}

// Verify runs `tapedeck verify` on the recording.
func (b *Box) Verify() Result {
	b.t.Helper()
	return b.command(b.tapedeck, "verify", b.recording)
}

// Recording is the path of what Record left.
func (b *Box) Recording() string { return b.recording }

// Holds returns the files of the recording in which text stands.
func (b *Box) Holds(text string) []string {
	b.t.Helper()
	var found []string
	err := filepath.WalkDir(b.recording, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// Command is tapedeck as the box's user in the work directory, to be started by the caller.
func (b *Box) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(b.tapedeck, args...)
	cmd.Dir, cmd.Env = b.Work, b.env
	b.as.take(cmd)
	return cmd
}

// Tapedeck runs tapedeck as the box's user and waits for its end.
func (b *Box) Tapedeck(args ...string) Result {
	b.t.Helper()
	return b.command(b.tapedeck, args...)
}

// Run runs another program as the box's user and waits for its end.
func (b *Box) Run(name string, args ...string) Result {
	b.t.Helper()
	return b.command(name, args...)
}

// Binary is the path of tapedeck.
func (b *Box) Binary() string { return b.tapedeck }

// Program is Command for another program.
func (b *Box) Program(name string, args ...string) *exec.Cmd {
	cmd := b.Command(args...)
	cmd.Path, cmd.Args[0] = name, name
	return cmd
}

// command runs a program as the box's user and waits for its end.
func (b *Box) command(name string, args ...string) Result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Dir, cmd.Env = b.Work, b.env
	cmd.WaitDelay = 5 * time.Second
	b.as.take(cmd)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatalf("%s %q: %v", name, args, err)
	}
	res := Result{Status: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
	if ctx.Err() != nil {
		b.t.Fatalf("%s %q did not end in %v\n%s", name, args, limit, res)
	}
	return res
}

func (r Result) String() string {
	return fmt.Sprintf("status %d\nstdout: %s\nstderr: %s", r.Status, r.Stdout, r.Stderr)
}

// Tool returns a program's path in the system's folders, and skips the test where it is missing.
func Tool(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range filepath.SplitList(systemPath) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Skipf("no %s in %s", name, systemPath)
	return ""
}

// built is the tapedeck of this test binary, made once.
var built struct {
	once sync.Once
	path string
	err  error
}

// Main runs a package's tests and removes what Each built. TestMain calls it.
func Main(m *testing.M) {
	status := m.Run()
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(status)
}

// build compiles the command and returns its path, which everyone may run.
func build(t *testing.T) string {
	t.Helper()
	built.once.Do(func() { built.path, built.err = compile() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func compile() (string, error) {
	dir, err := os.MkdirTemp("", "tapedeck-built-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "tapedeck")
	if err := os.Chmod(dir, 0o755); err != nil {
		return path, err
	}
	cmd := exec.Command("go", "build", "-o", path, "github.com/tapedeck-dev/tapedeck/cmd/tapedeck")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return path, fmt.Errorf("building tapedeck: %w\n%s", err, out)
	}
	return path, nil
}
