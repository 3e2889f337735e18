package process

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Call is one entry of a process tape, *.process-tape.json: a command, and what came of it.
//
// Its strings may hold any bytes. A process tape holds text, so what is not UTF-8 stands there with U+FFFD in it, and its true bytes in
// a last key, raw {"stdout":"<base64>","args.1":…}, as on an event tape.
type Call struct {
	Program    string
	Args       []string // without the program's name
	Cwd        *string  // nil fits a command in any directory
	Env        map[string]string
	Stdout     string
	Stderr     string
	ExitCode   int
	DurationMS int64
	Signal     string       // ours: "SIGTERM"; "" for none, and not written then
	Failure    string       // ours: see Result.Failure; "" for none, and not written then
	Changes    []Change     // ours: the files that it changed; none is not written
	Extra      []tape.Field // further keys, as they stood
}

// maxProcessTape bounds a process tape, in bytes, that is read.
const maxProcessTape = 1 << 30

// ReadCalls reads a process tape, up to 1 GiB. name is what errors call it; they name the call too, from 1.
func ReadCalls(r io.Reader, name string) ([]Call, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxProcessTape+1))
	if err != nil {
		return nil, fmt.Errorf("process tape %s: %w", name, err)
	}
	if len(b) > maxProcessTape {
		return nil, fmt.Errorf("process tape %s: more than %d bytes: is it one?", name, maxProcessTape)
	}
	calls, err := parseCalls(b)
	if err != nil {
		return nil, fmt.Errorf("process tape %s: %w", name, err)
	}
	return calls, nil
}

// parseCalls reads a list of calls.
func parseCalls(b []byte) ([]Call, error) {
	if err := jsonscan.ValidUTF8(b); err != nil {
		return nil, err
	}
	var s jsonscan.Scanner
	s.Reset(b)
	if s.Peek() != '[' {
		s.Fail("want a JSON list of calls, [{\"program\":…}, …]")
		return nil, s.Err()
	}
	calls := []Call{}
	for s.Begin('['); s.More(']'); {
		var c Call
		if err := c.parse(&s); err != nil {
			return nil, fmt.Errorf("call %d: %w", len(calls)+1, err)
		}
		calls = append(calls, c)
	}
	return calls, s.End()
}

// parse reads the call that comes next. What is absent is empty, but the program, which every call has.
func (c *Call) parse(s *jsonscan.Scanner) error {
	p := callParser{Scanner: s, c: c, seen: make(map[string]bool)}
	for s.Begin('{'); s.More('}'); {
		p.member(string(s.Key()))
	}
	if s.Err() == nil && c.Program == "" {
		s.Fail("a call needs a program")
	}
	if s.Err() == nil {
		c.restore(p.raw)
	}
	return s.Err()
}

// A callParser reads the members of one call.
type callParser struct {
	*jsonscan.Scanner
	c    *Call
	seen map[string]bool
	raw  map[string]string // by key; the bytes
}

func (p *callParser) member(key string) {
	if p.seen[key] {
		p.Fail("%q stands twice", key)
	}
	p.seen[key] = true
	c := p.c
	switch key {
	case "program":
		c.Program = p.Text()
	case "args":
		c.Args = p.texts()
	case "cwd":
		c.Cwd = p.textOrNull()
	case "env":
		c.Env = p.pairs()
	case "stdout":
		c.Stdout = p.Text()
	case "stderr":
		c.Stderr = p.Text()
	case "exit_code":
		c.ExitCode = p.exitCode()
	case "duration_ms":
		c.DurationMS = p.duration()
	default:
		p.ours(key)
	}
}

// ours reads the keys that are not in the format, and those that nobody knows.
func (p *callParser) ours(key string) {
	switch key {
	case "signal":
		p.c.Signal = p.Text()
	case failureKey:
		p.c.Failure = p.Text()
	case "changes":
		p.c.Changes = p.changes()
	case "raw":
		p.raw = p.bytes()
	default:
		value := p.Raw()
		p.c.Extra = append(p.c.Extra, tape.Field{Name: key, Value: append([]byte(nil), value...)})
	}
}

func (p *callParser) texts() []string {
	out := []string{}
	if p.Null() {
		return out
	}
	for p.Begin('['); p.More(']'); {
		out = append(out, p.Text())
	}
	return out
}

func (p *callParser) textOrNull() *string {
	if p.Null() {
		return nil
	}
	s := p.Text()
	return &s
}

// pairs reads an object of strings; null is an empty one.
func (p *callParser) pairs() map[string]string {
	out := map[string]string{}
	if p.Null() {
		return out
	}
	for p.Begin('{'); p.More('}'); {
		name := string(p.Key())
		if _, twice := out[name]; twice {
			p.Fail("%q stands twice", name)
		}
		out[name] = p.Text()
	}
	return out
}

// changes reads a list of files.
func (p *callParser) changes() []Change {
	var out []Change
	for p.Begin('['); p.More(']'); {
		out = append(out, p.change())
	}
	return out
}

func (p *callParser) change() (c Change) {
	mode := ""
	for p.Begin('{'); p.More('}'); {
		switch key := string(p.Key()); key {
		case "path":
			c.Path = p.Text()
		case "mode":
			mode = p.Text()
		case "deleted":
			c.Deleted = p.Bool()
		case "dir":
			c.Dir = p.Bool()
		case "target":
			c.Target = p.Text()
		case "content":
			c.Content = []byte(p.Text())
		case "base64":
			c.Content = p.base64()
		default:
			p.Fail("changes: %q is no key of a changed file", key)
		}
	}
	if c.Path == "" {
		p.Fail("changes: a changed file needs a path")
	}
	return c.as(mode)
}

// as is c with what its sort has alone: of what is gone nothing, of a directory and of a link no content.
func (c Change) as(mode string) Change {
	switch {
	case c.Deleted:
		return Change{Path: c.Path, Deleted: true}
	case c.Dir:
		return Change{Path: c.Path, Dir: true}
	case c.Target != "":
		return Change{Path: c.Path, Target: c.Target}
	}
	c.Perm = permOfMode(mode)
	return c
}

func (p *callParser) base64() []byte {
	b, err := base64.StdEncoding.DecodeString(p.Text())
	if err != nil {
		p.Fail("want base64")
	}
	return b
}

// bytes reads an object of strings in base64.
func (p *callParser) bytes() map[string]string {
	out := p.pairs()
	for name, value := range out {
		b, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			p.Fail("raw: %q is not base64", name)
		}
		out[name] = string(b)
	}
	return out
}

func (p *callParser) exitCode() int {
	code := p.Int()
	if code < math.MinInt32 || code > math.MaxUint32 {
		p.Fail("no program exits with %d", code)
	}
	return int(code)
}

func (p *callParser) duration() int64 {
	ms := p.Int()
	if ms < 0 || ms > maxDurationMS {
		p.Fail("a command cannot last %d ms", ms)
	}
	return ms
}

// restore puts the true bytes where they belong. A key of raw that names no string of the call is ignored, as is one whose bytes do not
// read as what stands there.
func (c *Call) restore(raw map[string]string) {
	if len(raw) == 0 {
		return
	}
	c.eachText(func(key string, v *string) {
		if b, ok := raw[key]; ok {
			if text, _ := tape.SafeString(b); text == *v {
				*v = b
			}
		}
	})
}

// eachText calls f with the strings of c that may hold any bytes, in the order of the keys.
func (c *Call) eachText(f func(key string, v *string)) {
	f("program", &c.Program)
	for i := range c.Args {
		f("args."+strconv.Itoa(i), &c.Args[i])
	}
	if c.Cwd != nil {
		f("cwd", c.Cwd)
	}
	f("stdout", &c.Stdout)
	f("stderr", &c.Stderr)
}

// command is what c answers.
func (c *Call) command() *Command {
	return &Command{Program: c.Program, Args: c.Args, Cwd: c.Cwd, Env: c.Env}
}

// result is what came of c.
func (c *Call) result() *Result {
	return &Result{
		Stdout: []byte(c.Stdout), Stderr: []byte(c.Stderr), ExitCode: c.ExitCode, Signal: c.Signal, Failure: c.Failure, Changes: c.Changes,
		Duration: time.Duration(min(max(c.DurationMS, 0), maxDurationMS)) * time.Millisecond,
	}
}

// callOf is the entry of a command and its result.
func callOf(cmd *Command, res *Result) Call {
	c := cmd.Clone()
	return Call{
		Program: c.Program, Args: c.Args, Cwd: c.Cwd, Env: c.Env, Stdout: string(res.Stdout), Stderr: string(res.Stderr),
		ExitCode: res.ExitCode, DurationMS: res.Duration.Milliseconds(), Signal: res.Signal, Failure: res.Failure,
		Changes: res.Changes,
	}
}

// WriteCalls writes a process tape: a JSON list, a key on each line. Equal calls give equal bytes. Errors are those of w, and of a name
// or a value in an environment that is not UTF-8, for which the format has no place.
func WriteCalls(w io.Writer, calls []Call) error {
	out := bufio.NewWriter(w)
	end := "[]\n"
	for i := range calls {
		b, err := calls[i].appendJSON(nil)
		if err != nil {
			return fmt.Errorf("process tape: call %d: %w", i+1, err)
		}
		before := ",\n  "
		if i == 0 {
			before, end = "[\n  ", "\n]\n"
		}
		out.WriteString(before) // an error of it is Flush's
		out.Write(b)
	}
	out.WriteString(end)
	return out.Flush()
}

// A callWriter writes the members of one call.
type callWriter struct {
	b   []byte
	raw map[string]string // what is not UTF-8
}

// appendJSON appends c, keys in the format's order, ours behind them.
func (c *Call) appendJSON(dst []byte) ([]byte, error) {
	for name, value := range c.Env {
		if jsonscan.ValidUTF8([]byte(name+value)) != nil {
			return nil, fmt.Errorf("the environment's %q is not UTF-8", name)
		}
	}
	w := &callWriter{b: append(dst, '{'), raw: make(map[string]string)}
	w.text("program", c.Program)
	w.args(c.Args)
	w.key("cwd")
	if c.Cwd == nil {
		w.b = append(w.b, "null"...)
	} else {
		w.value("cwd", *c.Cwd)
	}
	w.key("env")
	w.pairs(c.Env)
	w.text("stdout", c.Stdout)
	w.text("stderr", c.Stderr)
	w.key("exit_code")
	w.b = strconv.AppendInt(w.b, int64(c.ExitCode), 10)
	w.key("duration_ms")
	w.b = strconv.AppendInt(w.b, c.DurationMS, 10)
	w.ours(c)
	return append(w.b, "\n  }"...), nil
}

// ours writes the keys that are not in the format, where there is anything to say.
func (w *callWriter) ours(c *Call) {
	if c.Signal != "" {
		w.text("signal", c.Signal)
	}
	if c.Failure != "" {
		w.text(failureKey, c.Failure)
	}
	if len(c.Changes) > 0 {
		w.key("changes")
		w.changes(c.Changes)
	}
	for _, f := range c.Extra {
		w.key(f.Name)
		w.b = append(w.b, f.Value...)
	}
	if len(w.raw) > 0 {
		w.key("raw")
		for name, b := range w.raw {
			w.raw[name] = base64.StdEncoding.EncodeToString([]byte(b))
		}
		w.pairs(w.raw)
	}
}

func (w *callWriter) key(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(jsonscan.AppendText(append(w.b, "\n    "...), name), ": "...)
}

func (w *callWriter) text(key, v string) {
	w.key(key)
	w.value(key, v)
}

// value writes a string, whose true bytes are kept where it is not UTF-8.
func (w *callWriter) value(key, v string) {
	text, b := tape.SafeString(v)
	if b != nil {
		w.raw[key] = v
	}
	w.b = jsonscan.AppendText(w.b, text)
}

func (w *callWriter) args(args []string) {
	w.key("args")
	w.b = append(w.b, '[')
	for i, a := range args {
		if i > 0 {
			w.b = append(w.b, ", "...)
		}
		w.value("args."+strconv.Itoa(i), a)
	}
	w.b = append(w.b, ']')
}

// changes writes a list of files, one on each line.
func (w *callWriter) changes(list []Change) {
	w.b = append(w.b, '[')
	for i := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		c := &list[i]
		w.b = jsonscan.AppendText(append(w.b, "\n      {\"path\": "...), c.Path)
		switch {
		case c.Deleted:
			w.b = append(w.b, `, "deleted": true`...)
		case c.Dir:
			w.b = append(w.b, `, "dir": true`...)
		case c.Target != "":
			w.b = jsonscan.AppendText(append(w.b, `, "target": `...), c.Target)
		case utf8.Valid(c.Content):
			w.b = jsonscan.AppendText(append(w.mode(c.Perm), `, "content": `...), string(c.Content))
		default:
			w.b = append(w.mode(c.Perm), `, "base64": "`...)
			w.b = append(base64.StdEncoding.AppendEncode(w.b, c.Content), '"')
		}
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, "\n    ]"...)
}

func (w *callWriter) mode(perm fs.FileMode) []byte {
	if perm&0o100 != 0 {
		return append(w.b, `, "mode": "100755"`...)
	}
	return append(w.b, `, "mode": "100644"`...)
}

// pairs writes an object of strings on one line, sorted.
func (w *callWriter) pairs(m map[string]string) {
	w.b = append(w.b, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			w.b = append(w.b, ", "...)
		}
		w.b = append(jsonscan.AppendText(w.b, name), ": "...)
		w.b = jsonscan.AppendText(w.b, m[name])
	}
	w.b = append(w.b, '}')
}

// differs lists the fields in which a command is not what c answers.
func (c *Call) differs(asked *Command, clean func([]byte) []byte) []string {
	asked, has := asked.cleaned(clean), c.command().cleaned(clean)
	if has.Cwd == nil {
		has.Cwd = asked.Cwd
	}
	return differing(asked, has, false)
}

// Clean is c without its secrets: every text and content of it as clean has it. It shares nothing that it changes with c.
func (c Call) Clean(clean func(b []byte) []byte) Call {
	c.Args, c.Env, c.Changes = slices.Clone(c.Args), maps.Clone(c.Env), slices.Clone(c.Changes)
	if c.Cwd != nil {
		cwd := *c.Cwd
		c.Cwd = &cwd
	}
	c.eachText(func(_ string, v *string) { *v = string(clean([]byte(*v))) })
	for _, name := range slices.Sorted(maps.Keys(c.Env)) { // in the same order each time: clean may number what it meets
		c.Env[name] = string(clean([]byte(c.Env[name])))
	}
	for i := range c.Changes {
		if content := c.Changes[i].Content; content != nil {
			c.Changes[i].Content = clean(content)
		}
	}
	return c
}
