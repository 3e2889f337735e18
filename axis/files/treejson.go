package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TreeVersion is the version of tree.json that this package writes and reads.
const TreeVersion = 1

// lineEntry is the JSON form of an Entry, keys in the order of the file.
type lineEntry struct {
	Path   string            `json:"path"`
	Mode   string            `json:"mode"`
	Size   *int64            `json:"size,omitempty"`
	Blake3 *cas.Digest       `json:"blake3,omitempty"`
	Target string            `json:"target,omitempty"`
	Secret string            `json:"secret,omitempty"`
	Xattrs json.RawMessage   `json:"xattrs,omitempty"`
	MTime  int64             `json:"mtime_ns,omitempty"`
	Raw    map[string][]byte `json:"raw,omitempty"`
}

// lineNotCovered is the JSON form of a NotCovered.
type lineNotCovered struct {
	Path   string            `json:"path"`
	Reason Reason            `json:"reason"`
	Raw    map[string][]byte `json:"raw,omitempty"`
}

// linePath is the JSON form of a path in a list of them.
type linePath struct {
	Path string            `json:"path"`
	Raw  map[string][]byte `json:"raw,omitempty"`
}

// Encode writes t as tree.json. The same tree gives the same bytes. Errors are those of w.
func (t *Tree) Encode(w io.Writer) error {
	e := newTreeEncoder(w)
	root, rawRoot := tape.SafeString(t.Root)
	e.str(`{"version":1,"root":`)
	e.value(root)
	if rawRoot != nil {
		e.str(`,"raw":`)
		e.value(map[string][]byte{"root": rawRoot})
	}
	if t.MTime != 0 {
		e.str(`,"mtime_ns":`)
		e.value(t.MTime)
	}
	if t.Partial {
		e.str(`,"partial":true`)
	}
	e.str(`,"entries":[`)
	for i := range t.Entries {
		e.item(i, t.Entries[i].line())
	}
	e.str("\n" + `],"not_covered":[`)
	for i, n := range t.NotCovered {
		l := lineNotCovered{Reason: n.Reason}
		l.Path = l.keep("path", n.Path)
		e.item(i, l)
	}
	e.paths("absent", t.Absent)
	e.paths("moved", t.Moved)
	e.str("\n]}\n")
	return e.flush()
}

// paths begins another list behind the last one, unless it is empty.
func (e *treeEncoder) paths(key string, list []string) {
	if len(list) > 0 {
		e.str("\n" + `],"` + key + `":[`)
	}
	for i, p := range list {
		var l linePath
		l.Path = keepRaw(&l.Raw, "path", p)
		e.item(i, l)
	}
}

// line returns the JSON form of e.
func (e *Entry) line() lineEntry {
	l := lineEntry{Mode: e.Mode.String(), Secret: e.Secret, Xattrs: json.RawMessage(e.Attrs), MTime: e.MTime}
	if e.Mode.IsRegular() {
		l.Size, l.Blake3 = &e.Size, &e.Digest
	}
	l.Path = l.keep("path", e.Path)
	l.Target = l.keep("target", e.Target)
	return l
}

// keep returns the text form of s and, where it is not s itself, notes the true bytes under key.
func (l *lineEntry) keep(key, s string) string { return keepRaw(&l.Raw, key, s) }

// keep is that of lineEntry.
func (l *lineNotCovered) keep(key, s string) string { return keepRaw(&l.Raw, key, s) }

func keepRaw(raw *map[string][]byte, key, s string) string {
	shown, truly := tape.SafeString(s)
	if truly == nil {
		return shown
	}
	if *raw == nil {
		*raw = make(map[string][]byte, 1)
	}
	(*raw)[key] = truly
	return shown
}

// A treeEncoder writes JSON, one list item a line, and keeps the first error.
type treeEncoder struct {
	w    *bufio.Writer
	buf  bytes.Buffer
	json *json.Encoder
	err  error
}

func newTreeEncoder(w io.Writer) *treeEncoder {
	e := &treeEncoder{w: bufio.NewWriterSize(w, 1<<16)}
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	return e
}

func (e *treeEncoder) str(s string) {
	if e.err == nil {
		_, e.err = e.w.WriteString(s)
	}
}

func (e *treeEncoder) value(v any) {
	if e.err != nil {
		return
	}
	e.buf.Reset()
	if e.err = e.json.Encode(v); e.err == nil {
		_, e.err = e.w.Write(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n")))
	}
}

func (e *treeEncoder) item(i int, v any) {
	if i > 0 {
		e.str(",")
	}
	e.str("\n")
	e.value(v)
}

func (e *treeEncoder) flush() error {
	if e.err != nil {
		return e.err
	}
	return e.w.Flush()
}
