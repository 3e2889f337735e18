package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// Suffix is what the names of files with tests end in.
const Suffix = "_test.star"

// ErrNone is returned by Find where there is no test.
var ErrNone = errors.New("no file ends in " + Suffix)

// Find returns the files with tests among paths and below those that are directories, sorted, each once. Directories whose name
// begins with a dot are passed over, and so are the trees of fixtures (X_test.files) and links. The error is that of the file system, or
// ErrNone with the path under which there is none.
func Find(paths ...string) ([]string, error) {
	var all []string
	for _, path := range paths {
		found, err := find(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: %w", path, ErrNone)
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func find(path string) (found []string, err error) {
	path = filepath.Clean(path)
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		if st.Mode().IsRegular() && strings.HasSuffix(path, Suffix) {
			found = []string{path}
		}
		return found, nil
	}
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != path && (strings.HasPrefix(d.Name(), ".") || strings.HasSuffix(d.Name(), filesSuffix)):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(p, Suffix):
			found = append(found, p)
		}
		return nil
	})
	return found, err
}

// HoldTests reports whether paths are what Find takes, directories and files of tests, or the one program that is to run: so is a single
// file that is called as tests are and holds none. The error says that they are neither.
func HoldTests(paths []string) (bool, error) {
	tests := 0
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		if st.IsDir() || strings.HasSuffix(path, Suffix) {
			tests++
		}
	}
	if tests < len(paths) && len(paths) > 1 {
		return false, fmt.Errorf("%s: want one program, or directories and files of tests; its arguments go behind --", strings.Join(paths, ", "))
	}
	return tests > 0 && (len(paths) > 1 || !isProgram(paths[0])), nil
}

// isProgram reports whether a file holds no test. Of one that does not parse the tests say so.
func isProgram(path string) bool {
	st, err := os.Stat(path)
	if err != nil || st.IsDir() {
		return false
	}
	tests, err := script.Tests(path)
	return err == nil && len(tests) == 0
}

// Inputs are the flags of a command line that say where a run's inputs come from, as they were typed. "" is a flag that was not.
type Inputs struct {
	Clock     string   // real, paused, or paused=TIME: RFC 3339 or Unix ms
	Seed      uint64   // of random numbers
	LLM       string   // a file of rules, record=OUT, or live
	Files     string   // a directory
	Diff      string   // where the changes go, as a patch
	WriteBack bool     // the changes go into Files
	Processes string   // a process tape, record=OUT, or live
	MCP       string   // the path of a recording or a tape
	Net       string   // deny, the path of a recording or a tape, or allow=HOST,…
	Env       []string // NAME=VALUE
	Emit      string   // the path of the run's tape
}

// NamesTape reports whether an MCP or a Net names a recording or a tape.
func NamesTape(s string) bool {
	return s != "" && s != "deny" && s != "allow" && !strings.HasPrefix(s, "allow=")
}

// ForTests refuses what would be the same for every test: the places where a run's results go, and arguments.
func (in *Inputs) ForTests(args []string) error {
	for _, given := range [][2]string{{"--emit-tape", in.Emit}, {"--diff", in.Diff}} {
		flag, value := given[0], given[1]
		if value != "" {
			return fmt.Errorf("%s %s is for one program: tests keep golden tapes (--update writes them)", flag, value)
		}
	}
	switch {
	case in.WriteBack:
		return errors.New("--write-back is for one program: tests leave their files as they are")
	case len(args) > 0:
		return fmt.Errorf("tests take no arguments, and behind -- stands %s", strings.Join(args, " "))
	}
	return nil
}

// Config returns what they ask for. The error names the flag, what it takes, and what came; of a file that is not there, what Stat says.
func (in *Inputs) Config() (*testbench.Config, error) {
	c := &testbench.Config{
		Seed: in.Seed, MCP: in.MCP, Emit: in.Emit,
		Files: testbench.Files{Dir: in.Files, Diff: in.Diff, WriteBack: in.WriteBack},
	}
	for _, read := range []func(*testbench.Config) error{in.clock, in.sources, in.net, in.env, in.files, there} {
		if err := read(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (in *Inputs) clock(c *testbench.Config) error {
	switch word, start, at := strings.Cut(in.Clock, "="); {
	case in.Clock == "" || in.Clock == "paused":
	case in.Clock == "real":
		c.Clock.Real = true
	case word == "paused" && at:
		var err error
		c.Clock.Start, err = parseTime(start)
		return err
	default:
		return fmt.Errorf("--clock %q: want real, paused or paused=TIME", in.Clock)
	}
	return nil
}

// parseTime reads RFC 3339 or Unix ms.
func parseTime(s string) (time.Time, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		if ms > math.MaxInt64/int64(time.Millisecond) || ms < math.MinInt64/int64(time.Millisecond) {
			return time.Time{}, fmt.Errorf("--clock paused=%s: that many ms lead past the years 1678 to 2262", s)
		}
		return time.UnixMilli(ms), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("--clock paused=%s: want a time as 2026-01-01T00:00:00Z, or Unix ms", s)
	}
	return t, nil
}

func (in *Inputs) sources(c *testbench.Config) error {
	l, p := &c.LLM, &c.Processes
	if err := source("llm", in.LLM, &l.Fixture, &l.Record, &l.Live); err != nil {
		return err
	}
	return source("processes", in.Processes, &p.Tape, &p.Record, &p.Live)
}

// source reads a file, record=OUT or live.
func source(flag, s string, file, record *string, live *bool) error {
	switch word, out, _ := strings.Cut(s, "="); {
	case s == "live":
		*live = true
	case word == "record" && out == "":
		return fmt.Errorf("--%s %s: want record=OUT, the file that the answers go to (a file of that name is ./record)", flag, s)
	case word == "record":
		*record = out
	default:
		*file = s
	}
	return nil
}

func (in *Inputs) net(c *testbench.Config) error {
	switch word, hosts, _ := strings.Cut(in.Net, "="); {
	case in.Net == "" || in.Net == "deny":
	case word == "allow":
		for host := range strings.SplitSeq(hosts, ",") {
			if host = strings.TrimSpace(host); host == "" {
				return fmt.Errorf("--net %s: want allow=HOST,…: a host is missing", in.Net)
			}
			c.Net.Allow = append(c.Net.Allow, host)
		}
	default:
		c.Net.Tape = in.Net
	}
	return nil
}

func (in *Inputs) env(c *testbench.Config) error {
	for _, e := range in.Env {
		name, value, set := strings.Cut(e, "=")
		if name == "" || !set {
			return fmt.Errorf("--env %q: want NAME=VALUE (NAME=\"$NAME\" passes one of yours on)", e)
		}
		if c.Env == nil {
			c.Env = make(map[string]string)
		}
		c.Env[name] = value
	}
	return nil
}

// there looks whether the files that are named are there, so that the error names the flag.
func there(c *testbench.Config) error {
	for _, f := range []struct {
		field, path string
		look        func(path string) error
	}{
		{"LLM.Fixture", c.LLM.Fixture, regular.Check}, {"Processes.Tape", c.Processes.Tape, regular.Check}, {"Files.Dir", c.Files.Dir, isThere},
		{"MCP", c.MCP, fileOrDir}, {"Net.Tape", c.Net.Tape, fileOrDir},
		{"Emit", c.Emit, replaceable}, {"Files.Diff", c.Files.Diff, replaceable},
		{"LLM.Record", c.LLM.Record, replaceable}, {"Processes.Record", c.Processes.Record, replaceable},
	} {
		if f.path == "" {
			continue
		}
		if err := f.look(f.path); err != nil {
			return Flagged(&testbench.ConfigError{Field: f.field, Err: err})
		}
	}
	return nil
}

// flags are the flags that set fields of a Config.
var flags = map[string]string{
	"Emit": "--emit-tape", "Env": "--env", "Files.Diff": "--diff", "Files.Dir": "--files", "Files.Read": "--files", "Files.WriteBack": "--write-back",
	"LLM.Fixture": "--llm", "LLM.Record": "--llm", "MCP": "--mcp", "Net": "--net", "Net.Tape": "--net",
	"Processes.Record": "--processes", "Processes.Tape": "--processes",
}

// Flagged is err as people read it who typed flags: what cannot be used by its flag, in the place of the field of a Config.
func Flagged(err error) error {
	var c *testbench.ConfigError
	if errors.As(err, &c) && flags[c.Field] != "" {
		return fmt.Errorf("%s: %w", flags[c.Field], c.Err)
	}
	return err
}

func isThere(path string) error {
	_, err := os.Stat(path)
	return err
}

func fileOrDir(path string) error {
	if st, err := os.Stat(path); err != nil || st.IsDir() {
		return err
	}
	return regular.Check(path)
}

func replaceable(path string) error {
	_, err := regular.Target(path)
	return err
}

func (in *Inputs) files(*testbench.Config) error {
	if in.WriteBack && in.Files == "" {
		return errors.New("--write-back writes into the directory of --files DIR, which is missing")
	}
	return nil
}

// The suffixes of what lies beside a file of tests, behind its name without .star.
const (
	llmSuffix     = ".llm.jsonl"
	processSuffix = ".process-tape.json"
	filesSuffix   = "_test.files"
	mcpSuffix     = ".mcp.tape"
	netSuffix     = ".net.tape"
	tapeSuffix    = ".tape"
)

// base is a file of tests without .star.
func base(file string) string { return strings.TrimSuffix(file, ".star") }

// golden is the path of the golden tape of a test.
func golden(file, function string) string { return base(file) + "." + function + tapeSuffix }

// beside returns c with what lies beside file. c is left as it is.
func beside(file string, c *testbench.Config) (*testbench.Config, error) {
	own := *c
	for suffix, set := range map[string]func(path string){
		llmSuffix:     func(path string) { own.LLM = testbench.LLM{Fixture: path} },
		processSuffix: func(path string) { own.Processes = testbench.Processes{Tape: path} },
		".files":      func(path string) { own.Files.Dir = path },
		mcpSuffix:     func(path string) { own.MCP = path },
		netSuffix:     func(path string) { own.Net = testbench.Net{Tape: path} },
	} {
		path := base(file) + suffix
		there, err := exists(path)
		if err != nil {
			return nil, err
		}
		if there {
			set(path)
		}
	}
	return &own, nil
}

// exists says whether a file or a directory stands at path. Opening anything else may wait for ever.
func exists(path string) (bool, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		return false, fmt.Errorf("%s is %s: want a file or a directory", path, regular.Kind(st.Mode()))
	}
	return err == nil, err
}
