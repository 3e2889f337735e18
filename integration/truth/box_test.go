package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// limit is how long one recording or replay may take before it counts as hung.
const limit = 2 * time.Minute

// A stage is what all boxes share: the binary under test, the endpoint, the keys of a user.
type stage struct {
	top, tapedeck string
	endpoint      *endpoint
}

// newStage builds tapedeck from this checkout unless one is named.
func newStage(ctx context.Context, tapedeck string) (*stage, error) {
	top, err := os.MkdirTemp("", "tapedeck-truth-")
	if err != nil {
		return nil, err
	}
	s := &stage{top: top}
	if tapedeck != "" { // it runs elsewhere
		s.tapedeck, err = filepath.Abs(fromRoot(tapedeck))
		if err == nil {
			_, err = os.Stat(s.tapedeck)
		}
		if err != nil {
			s.close()
			return nil, err
		}
	} else {
		s.tapedeck = filepath.Join(top, "tapedeck")
		out, err := exec.CommandContext(ctx, "go", "build", "-o", s.tapedeck, "github.com/tapedeck-dev/tapedeck/cmd/tapedeck").CombinedOutput()
		if err != nil {
			s.close()
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	if s.endpoint, err = newEndpoint(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) close() {
	if s.endpoint != nil {
		s.endpoint.close()
	}
	os.RemoveAll(s.top)
}

// languages are those that this machine has; the other is named in missing.
func languages() (have []*language, missing string) {
	have = []*language{python}
	if _, err := os.Stat(node.interpreter); err != nil {
		return have, node.interpreter + " is missing: programs are in Python alone"
	}
	return append(have, node), ""
}

// A box is one program's surroundings: work tree, HOME, temporary directory, and its source, which lies in none of them.
type box struct {
	*stage
	program *program
	top     string
}

// files are what every work tree has.
var files = map[string]string{
	"a.txt": "one\ntwo\n", "src/main.c": "int main(void) { return 0; }\n", "sub/b.txt": "b\n", ".gitignore": "*.log\n",
	".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
}

func (s *stage) box(p *program) (*box, error) {
	top, err := os.MkdirTemp(s.top, "box-")
	if err != nil {
		return nil, err
	}
	b := &box{stage: s, program: p, top: top}
	server, err := programs.ReadFile("programs/server.py")
	if err != nil {
		return nil, err
	}
	all := map[string]string{"agent/server.py": string(server)}
	for name, content := range files {
		all["work/"+name] = content
	}
	for _, name := range p.found {
		all["work/"+name] = "as it was found\n"
	}
	for name, content := range all {
		if err := b.put(name, content); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{"work/.git/objects", "work/.git/refs", "home", "tmp", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			return nil, err
		}
	}
	return b, b.source(p)
}

func (b *box) put(name, content string) error {
	path := filepath.Join(b.top, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

// source puts p where the recorded program lies: what a user does who edits an agent.
func (b *box) source(p *program) error {
	settings := map[string]string{}
	for _, f := range p.settings {
		settings[f.name()] = f.value
	}
	if err := b.put("home/.agentrc", quote(settings)); err != nil {
		return err
	}
	return b.put("agent/program"+p.language.suffix, p.source())
}

func (b *box) command(p *program) []string {
	argv := []string{p.language.interpreter, filepath.Join(b.top, "agent", "program"+p.language.suffix)}
	for _, f := range p.arguments {
		argv = append(argv, f.value)
	}
	return argv
}

func (b *box) env(p *program) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + filepath.Join(b.top, "home"), "TMPDIR=" + filepath.Join(b.top, "tmp"),
		"XDG_CONFIG_HOME=" + filepath.Join(b.stage.top, "config"), "LANG=C.UTF-8", "TZ=UTC"}
	for _, f := range p.environment {
		env = append(env, f.name()+"="+f.value)
	}
	return env
}

func (b *box) recording() string { return filepath.Join(b.top, "run.rec") }

// record records the program and says what went wrong when its end is not what it should be.
func (b *box) record(ctx context.Context) error {
	args := []string{"record", "--no-seal", "-o", b.recording()}
	for _, name := range b.endpoint.names() {
		args = append(args, "--upstream", name+"="+b.endpoint.URL)
	}
	args = append(append(b.program.mode.flags(args), "--"), b.command(b.program)...)
	r := b.run(ctx, "work", b.env(b.program), args)
	if r.Status != b.program.exit {
		return fmt.Errorf("recording ended with %d, not %d: %s", r.Status, b.program.exit, r.Stderr)
	}
	return nil
}

func (m mode) flags(args []string) []string {
	if m == proxied {
		return append(args, "--proxy")
	}
	return args
}

// A result is how a command ended.
type result struct {
	Status int // -1 when it hung
	Report report
	Stderr string
}

// A report is what `replay --json` says, as far as it is read here; All is everything in it.
type report struct {
	Divergences []divergence   `json:"divergences"`
	Notes       []string       `json:"notes"`
	Masked      map[string]int `json:"masked"`
	All         any            `json:"-"`
}

type divergence struct {
	Category string `json:"category"`
	Message  string `json:"message"`
	Cause    string `json:"cause"`
	All      string `json:"-"`
}

// replay replays in the place of the work tree, or another.
func (b *box) replay(ctx context.Context, from string, env, command []string) result {
	if err := b.clear(); err != nil {
		return result{Status: -1, Stderr: err.Error()}
	}
	args := b.program.mode.flags([]string{"replay", b.recording(), "--json"})
	if command != nil {
		args = append(append(args, "--"), command...)
	}
	return b.run(ctx, from, env, args)
}

// clear takes back what the program left in HOME and the temporary directory, where no jail does that: there it stays on the disk.
func (b *box) clear() error {
	for _, dir := range []string{"home", "tmp"} {
		entries, err := os.ReadDir(filepath.Join(b.top, dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if b.program.mode == proxied && e.Name() != ".agentrc" {
				if err := os.RemoveAll(filepath.Join(b.top, dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *box) run(ctx context.Context, dir string, env, args []string) result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, b.tapedeck, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Join(b.top, dir), env, &stdout, &stderr
	err := cmd.Run()
	r := result{Stderr: stderr.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.Status = exit.ExitCode()
	} else if err != nil {
		r.Status, r.Stderr = -1, err.Error()
	}
	if args[0] == "replay" {
		r.Report.read(stdout.Bytes(), b.top)
	}
	return r
}

// read takes what it can: a report that is none leaves nothing, and the status says so.
func (r *report) read(b []byte, top string) {
	b = bytes.ReplaceAll(b, []byte(top), []byte("BOX"))
	var raw struct{ Divergences []json.RawMessage }
	if json.Unmarshal(b, r) != nil || json.Unmarshal(b, &raw) != nil || json.Unmarshal(b, &r.All) != nil {
		return
	}
	for i := range r.Divergences {
		r.Divergences[i].All = string(raw.Divergences[i])
	}
}
