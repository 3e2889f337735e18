package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// An env is what the rows of a run share. Rows run one after the other: nothing here is locked.
type env struct {
	root  string // of the checkout
	tmp   string // removed at the end
	self  string // this program, for jobs
	short bool
	rough bool // how long a run takes is not looked at
	peers bool
	log   io.Writer // of progress

	outputs map[string]output // of go test, by command: several rows read one
	built   output            // the path of tapedeck; "" until one is asked for
	aimock  output            // the path of its command line; "" until one is asked for
	npm     output            // the path of npm's cache with the packages of a workload; "" until one is asked for
	agents  output            // the node_modules that holds the agents; "" until one is asked for
	decks   map[string]deck   // recordings of a load, by what makes them
	jail    *bool             // whether it works here; nil until asked for

	recordCurves []*curve // see recordScale; nil until they are asked for

	shellTimes []timings // see shell; nil until they are asked for
	gateTimes  []timings // see gate; nil until they are asked for
	gateBusy   float64   // processors that the last of them kept busy
}

// An output is what a command gave, kept.
type output struct {
	text string
	err  error
}

func newEnv(ctx context.Context, o *options, log io.Writer) (*env, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	if _, err := os.Stat(filepath.Join(root, "cmd", "tapedeck")); err != nil {
		return nil, fmt.Errorf("the working directory must lie in a checkout of tapedeck: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return nil, err
	}
	e := &env{root: root, tmp: tmp, self: self, short: o.short, peers: o.peers, log: log}
	e.outputs, e.decks = make(map[string]output), make(map[string]deck)
	return e, nil
}

func (e *env) close() {
	if err := os.RemoveAll(e.tmp); err != nil {
		e.say("bench: %v\n", err)
	}
}

// settle brings to the disk what has been written on the file system of dir, unless nobody looks at how long a run takes.
func (e *env) settle(dir string) {
	if !e.rough {
		settle(dir)
	}
}

func (e *env) say(format string, args ...any) { fmt.Fprintf(e.log, format, args...) }

// pick returns long, or short in a short run.
func pick[T any](e *env, long, short T) T {
	if e.short {
		return short
	}
	return long
}

// dir makes a directory below the temporary one.
func (e *env) dir(name string) (string, error) { return os.MkdirTemp(e.tmp, name+"-") }

// command returns a command that ends, with all that it started, when ctx does. It runs in dir with an environment that
// holds little: PATH, a HOME of ours, and extra.
func (e *env) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + e.tmp, "TERM=xterm", "LANG=C.UTF-8"}
	cmd.WaitDelay = 10 * time.Second
	asGroup(cmd)
	return cmd
}

// do runs a command; the error holds the end of what it said.
func do(cmd *exec.Cmd) (time.Duration, error) {
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &said
	begun := time.Now()
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(short(cmd.Args), " "), err, said.String())
	}
	return time.Since(begun), err
}

// tapedeck returns the path of a tapedeck built from this checkout.
func (e *env) tapedeck(ctx context.Context) (string, error) {
	if e.built == (output{}) {
		path := filepath.Join(e.tmp, "tapedeck")
		cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/tapedeck")
		cmd.Dir, cmd.Env = e.root, append(os.Environ(), "CGO_ENABLED=0")
		_, err := do(cmd)
		e.built = output{path, err}
	}
	return e.built.text, e.built.err
}

// jailed reports whether programs can be recorded in the jail here.
func (e *env) jailed(ctx context.Context) (bool, error) {
	if e.jail == nil {
		tapedeck, err := e.tapedeck(ctx)
		if err != nil {
			return false, err
		}
		_, err = do(e.command(ctx, e.tmp, tapedeck, "doctor"))
		var refused *exec.ExitError
		if err != nil && !errors.As(err, &refused) {
			return false, err
		}
		e.jail = new(bool)
		*e.jail = err == nil
	}
	return *e.jail, nil
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

const maxTail = 2 << 10 // bytes

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-maxTail):]
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "")) }

// short leaves out of arguments what nobody reads.
func short(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; len(a) > 80 {
			out[i] = a[:80] + "…"
		}
	}
	return out
}

// quoted is a command line's arguments as a shell takes them.
func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; a == "" || strings.ContainsAny(a, " '\"$^|()*?[]\\&;<>`!{}~#") {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return out
}

// count writes a number with commas.
func count(n float64) string {
	s := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
