//go:build linux

package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

const (
	limit  = 2 * time.Minute // for one recording or replay
	nobody = 65534           // the user that a root caller runs everything as
)

// systemPath is where node and python3 are looked for: a version manager's folders lie in the caller's HOME.
const systemPath = "/usr/local/bin:/usr/bin:/bin"

// built holds tapedeck and the clients, which everyone may run; TestMain makes and removes it.
var built string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "tapedeck-sdk-"); err == nil {
		defer os.RemoveAll(built)
		err = errors.Join(os.Chmod(built, 0o755), compile("../..", "./cmd/tapedeck"), compile(".", "./clients/..."))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// compile builds commands of the module in dir, with its own versions of everything.
func compile(dir, packages string) error {
	cmd := exec.Command("go", "build", "-C", dir, "-o", built+string(filepath.Separator), packages)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", packages, dir, err, out)
	}
	return nil
}

// A result is how a command ended.
type result struct {
	status         int
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("status %d\nstdout: %s\nstderr: %s", r.status, r.stdout, r.stderr)
}

// A box is one program's surroundings: a HOME, a work tree and a recording, all fresh, and an environment that holds
// only what the test sets. A root caller's box belongs to an unprivileged user.
type box struct {
	t         *testing.T
	home      string
	work      string
	recording string
	env       []string
}

// newBox skips the test where the jail does not work.
func newBox(t *testing.T, env map[string]string) *box {
	t.Helper()
	top, err := os.MkdirTemp("", "tapedeck-box-") // outside t.TempDir, whose path is not readable by everyone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	b := &box{t: t, home: filepath.Join(top, "home"), work: filepath.Join(top, "work"), recording: filepath.Join(top, "run.rec")}
	b.env = []string{"PATH=" + systemPath, "HOME=" + b.home}
	for name, value := range env {
		b.env = append(b.env, name+"="+value)
	}
	for _, dir := range []string{b.home, b.work, top} {
		b.own(dir)
	}
	if res := b.tapedeck("doctor"); res.status != 0 {
		t.Skipf("the jail does not work here, so nothing is recorded:\n%v", res)
	}
	return b
}

// own makes a directory, unless it is there, and gives it to the box's user.
func (b *box) own(dir string) {
	b.t.Helper()
	err := os.MkdirAll(dir, 0o755)
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// tapedeck runs the command as the box's user and waits for its end.
func (b *box) tapedeck(args ...string) result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(built, "tapedeck"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Dir, cmd.Env, cmd.WaitDelay = b.work, b.env, 5*time.Second
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatalf("tapedeck %q: %v", args, err)
	}
	res := result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	if ctx.Err() != nil {
		b.t.Fatalf("tapedeck %q did not end in %v\n%v", args, limit, res)
	}
	return res
}

// record runs a program against a scripted endpoint, which answers for the hosts and is gone when record returns. It
// returns what the program printed and what the endpoint was asked.
func (b *box) record(options *scriptedllm.Options, hosts []string, argv ...string) (string, []scriptedllm.Request) {
	b.t.Helper()
	options.More = embeddingsAndUploads()
	endpoint := scriptedllm.New(options)
	server := httptest.NewServer(endpoint)
	defer server.Close()
	args := []string{"record", "-o", b.recording}
	for _, host := range hosts {
		args = append(args, "--upstream", host+"="+server.URL)
	}
	res := b.tapedeck(append(append(args, "--"), argv...)...)
	if res.status != 0 {
		b.t.Fatalf("record: %v", res)
	}
	if n := endpoint.Unknown(); n > 0 {
		b.t.Errorf("%d requests went to paths that the scripted endpoint does not know", n)
	}
	return res.stdout, endpoint.Requests()
}

// replay plays the recording, with another command line where one is given.
func (b *box) replay(argv ...string) result {
	b.t.Helper()
	args := []string{"replay", b.recording}
	if len(argv) > 0 {
		args = append(append(args, "--"), argv...)
	}
	return b.tapedeck(args...)
}

// A record is what `tapedeck show --json` says of a model call.
type record struct {
	Kind struct {
		Kind     string
		Provider string
		Endpoint string
		Model    string
		Status   int
		URL      string
		Usage    map[string]any
	}
}

// calls returns the model calls of the recording.
func (b *box) calls() []record {
	b.t.Helper()
	res := b.tapedeck("show", b.recording, "--kind", "llm_call", "--json")
	if res.status != 0 {
		b.t.Fatalf("show: %v", res)
	}
	var shown struct{ Records []record }
	if err := json.NewDecoder(strings.NewReader(res.stdout)).Decode(&shown); err != nil {
		b.t.Fatalf("show --json: %v\n%s", err, res.stdout)
	}
	return shown.Records
}

// holds returns the files of the recording in which text stands.
func (b *box) holds(text string) []string {
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
