package process

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
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

// A callForm is a call as it stands on a process tape.
type callForm struct {
	Program    string       `json:"program"`
	Args       []string     `json:"args"`
	Cwd        *string      `json:"cwd"`
	Env        pairs        `json:"env"`
	Stdout     string       `json:"stdout"`
	Stderr     string       `json:"stderr"`
	ExitCode   int64        `json:"exit_code"`
	DurationMS int64        `json:"duration_ms"`
	Signal     string       `json:"signal"`
	Failure    string       `json:"failure"`
	Changes    []changeForm `json:"changes"`
	Raw        pairs        `json:"raw"` // in base64
	Whole      []byte       `json:"*"`
}

var callKeys = strings.Fields("program args cwd env stdout stderr exit_code duration_ms signal failure changes raw")

// A changeForm is a changed file as it stands on a process tape.
type changeForm struct {
	Path    string  `json:"path"`
	Mode    string  `json:"mode"`
	Deleted bool    `json:"deleted"`
	Dir     bool    `json:"dir"`
	Target  string  `json:"target"`
	Content string  `json:"content"`
	Base64  *string `json:"base64"` // in the place of Content where that is no text
	Whole   []byte  `json:"*"`
}

var changeKeys = strings.Fields("path mode deleted dir target content base64")

// pairs are an object of strings; null is an empty one.
type pairs map[string]string

// ReadJSON implements jsonscan.Value.
func (p *pairs) ReadJSON(s *jsonscan.Scanner) {
	if *p = make(pairs); s.Null() {
		return
	}
	for s.Begin('{'); s.More('}'); {
		name := string(s.Key())
		if _, twice := (*p)[name]; twice {
			s.Fail("%q stands twice", name)
		}
		(*p)[name] = s.Text()
	}
}

// parse reads the call that comes next. What is absent is empty, but the program, which every call has.
func (c *Call) parse(s *jsonscan.Scanner) error {
	var f callForm
	jsonscan.Strictly(s, &f)
	switch {
	case s.Err() != nil:
	case f.Program == "":
		s.Fail("a call needs a program")
	case f.ExitCode < math.MinInt32 || f.ExitCode > math.MaxUint32:
		s.Fail("no program exits with %d", f.ExitCode)
	case f.DurationMS < 0 || f.DurationMS > maxDurationMS:
		s.Fail("a command cannot last %d ms", f.DurationMS)
	}
	*c = Call{
		Program: f.Program, Args: f.Args, Cwd: f.Cwd, Env: f.Env, Stdout: f.Stdout, Stderr: f.Stderr, ExitCode: int(f.ExitCode),
		DurationMS: f.DurationMS, Signal: f.Signal, Failure: f.Failure, Extra: f.extra(),
	}
	for i := range f.Changes {
		change, err := f.Changes[i].change()
		if err != nil {
			s.Fail("changes: %w", err)
		}
		c.Changes = append(c.Changes, change)
	}
	for name, value := range f.Raw {
		b, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			s.Fail("raw: %q is not base64", name)
		}
		f.Raw[name] = string(b)
	}
	if s.Err() == nil {
		c.restore(f.Raw)
	}
	return s.Err()
}

// extra are the keys of a call that nobody knows.
func (f *callForm) extra() []tape.Field { return unknown(f.Whole, callKeys) }

func unknown(object []byte, keys []string) (out []tape.Field) {
	var s jsonscan.Scanner
	s.Reset(object)
	for s.Begin('{'); s.More('}'); {
		key := string(s.Key())
		if value := s.Raw(); !slices.Contains(keys, key) {
			out = append(out, tape.Field{Name: key, Value: slices.Clone(value)})
		}
	}
	return out
}

// change has of a file what its sort has alone: of what is gone nothing, of a directory and of a link no content.
func (f *changeForm) change() (Change, error) {
	if extra := unknown(f.Whole, changeKeys); len(extra) > 0 { // a misspelt one would be another change
		return Change{}, fmt.Errorf("%q is no key of a changed file", extra[0].Name)
	}
	switch {
	case f.Path == "":
		return Change{}, errors.New("a changed file needs a path")
	case f.Deleted:
		return Change{Path: f.Path, Deleted: true}, nil
	case f.Dir:
		return Change{Path: f.Path, Dir: true}, nil
	case f.Target != "":
		return Change{Path: f.Path, Target: f.Target}, nil
	}
	c := Change{Path: f.Path, Content: []byte(f.Content), Perm: permOfMode(f.Mode)}
	if f.Base64 == nil {
		return c, nil
	}
	var err error
	if c.Content, err = base64.StdEncoding.DecodeString(*f.Base64); err != nil {
		return c, errors.New("want base64")
	}
	return c, nil
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
