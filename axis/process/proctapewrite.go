package process

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
