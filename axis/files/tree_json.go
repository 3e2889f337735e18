package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TreeVersion is the version of tree.json that this package writes and reads.
const TreeVersion = 1

// maxEntries is how many items a list of a tree.json may have.
const maxEntries = 1 << 22

// ErrTree is wrapped by every refusal of a text that is no valid tree.json.
var ErrTree = errors.New("not a valid tree")

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
	e := &treeEncoder{w: bufio.NewWriterSize(w, 1<<16)}
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	var raw map[string][]byte
	root := safe(&raw, "root", t.Root)
	e.pair(`{"version":1,"root":`, root)
	if raw != nil {
		e.pair(`,"raw":`, raw)
	}
	if t.MTime != 0 {
		e.pair(`,"mtime_ns":`, t.MTime)
	}
	if t.Partial {
		e.w.WriteString(`,"partial":true`)
	}
	e.w.WriteString(`,"entries":[`)
	for i := range t.Entries {
		e.item(i, t.Entries[i].line())
	}
	e.w.WriteString("\n" + `],"not_covered":[`)
	for i, n := range t.NotCovered {
		l := lineNotCovered{Reason: n.Reason}
		l.Path = safe(&l.Raw, "path", n.Path)
		e.item(i, l)
	}
	e.paths("absent", t.Absent)
	e.paths("moved", t.Moved)
	e.w.WriteString("\n]}\n")
	return errors.Join(e.err, e.w.Flush())
}

// line returns the JSON form of e.
func (e *Entry) line() lineEntry {
	l := lineEntry{Mode: e.Mode.String(), Secret: e.Secret, Xattrs: json.RawMessage(e.Attrs), MTime: e.MTime}
	if e.Mode.IsRegular() {
		l.Size, l.Blake3 = &e.Size, &e.Digest
	}
	l.Path = safe(&l.Raw, "path", e.Path)
	l.Target = safe(&l.Raw, "target", e.Target)
	return l
}

// safe returns the text form of s and, where it is not s itself, notes the true bytes under key.
func safe(raw *map[string][]byte, key, s string) string {
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

// A treeEncoder writes JSON, one list item a line. w keeps its first error, which Flush returns.
type treeEncoder struct {
	w    *bufio.Writer
	buf  bytes.Buffer
	json *json.Encoder // to buf
	err  error         // of json
}

// pair writes a value behind a text.
func (e *treeEncoder) pair(text string, v any) {
	e.w.WriteString(text)
	e.buf.Reset()
	e.err = errors.Join(e.err, e.json.Encode(v))
	e.w.Write(bytes.TrimSuffix(e.buf.Bytes(), []byte("\n")))
}

// item writes the item i of a list.
func (e *treeEncoder) item(i int, v any) {
	if i > 0 {
		e.pair(",\n", v)
	} else {
		e.pair("\n", v)
	}
}

// paths begins another list behind the last one, unless it is empty.
func (e *treeEncoder) paths(key string, list []string) {
	if len(list) > 0 {
		e.w.WriteString("\n" + `],"` + key + `":[`)
	}
	for i, p := range list {
		var l linePath
		l.Path = safe(&l.Raw, "path", p)
		e.item(i, l)
	}
}

// DecodeTree reads a tree.json. It refuses, with an error that wraps ErrTree and names the entry: another version, keys
// that it does not know or that stand there twice, paths that are not clean and relative (also ErrPath), entries out of order,
// given twice, or without their parent directory before them. Memory is bounded by the number of entries.
func DecodeTree(r io.Reader) (*Tree, error) {
	in := &source{Reader: r}
	d := &treeDecoder{json: json.NewDecoder(in), tree: &Tree{}}
	d.json.DisallowUnknownFields()
	err := d.document()
	switch {
	case in.err != nil:
		return nil, in.err
	case err != nil:
		return nil, fmt.Errorf("files: tree.json: %w: %w", ErrTree, err)
	}
	if err := d.tree.Validate(); err != nil {
		return nil, err
	}
	return d.tree, nil
}

// A source remembers its failure, which is no fault of the text.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

type treeDecoder struct {
	json *json.Decoder
	tree *Tree
}

// document reads the whole of it.
func (d *treeDecoder) document() error {
	var version int
	var raw map[string][]byte
	values := map[string]any{
		"version": &version, "root": &d.tree.Root, "raw": &raw, "mtime_ns": &d.tree.MTime, "partial": &d.tree.Partial,
		"entries": d.entry, "not_covered": d.notCovered, "absent": pathsInto(&d.tree.Absent), "moved": pathsInto(&d.tree.Moved),
	}
	if err := d.delim('{'); err != nil {
		return err
	}
	for d.json.More() {
		key, err := d.json.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if values[name] == nil {
			return fmt.Errorf("the key %.80q at byte %d is unknown, or stands there twice", name, d.json.InputOffset())
		}
		if err := d.value(values[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		delete(values, name)
	}
	if err := d.delim('}'); err != nil {
		return err
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	for _, name := range []string{"version", "root", "entries", "not_covered"} {
		if values[name] != nil {
			return fmt.Errorf("it has no %s", name)
		}
	}
	if version != TreeVersion {
		return fmt.Errorf("version %d, this reads version %d", version, TreeVersion)
	}
	return trueBytes(&d.tree.Root, raw, "root")
}

// value reads what belongs to a key: a list, where to is what takes an item of it.
func (d *treeDecoder) value(to any) error {
	switch add := to.(type) {
	case func(*lineEntry) error:
		return list(d, add)
	case func(*lineNotCovered) error:
		return list(d, add)
	case func(*linePath) error:
		return list(d, add)
	}
	return d.json.Decode(to)
}

func list[L any](d *treeDecoder, add func(*L) error) error {
	if err := d.delim('['); err != nil {
		return err
	}
	for n := 0; d.json.More(); n++ {
		if n == maxEntries {
			return fmt.Errorf("more than %d entries", maxEntries)
		}
		var l L
		if err := d.json.Decode(&l); err != nil {
			return err
		}
		if err := add(&l); err != nil {
			return err
		}
	}
	return d.delim(']')
}

func (d *treeDecoder) delim(want json.Delim) error {
	tok, err := d.json.Token()
	if err == nil && tok != want {
		err = fmt.Errorf("wants %q at byte %d", want.String(), d.json.InputOffset())
	}
	return err
}

func (d *treeDecoder) entry(l *lineEntry) error {
	e := Entry{Path: l.Path, Target: l.Target, Secret: l.Secret, MTime: l.MTime, Attrs: string(l.Xattrs)}
	mode, err := ParseMode(l.Mode)
	if file := mode.IsRegular(); err == nil && (file != (l.Blake3 != nil) || file != (l.Size != nil)) {
		err = errors.New("size and blake3 belong to each regular file and to nothing else")
	}
	err = errors.Join(err, trueBytes(&e.Path, l.Raw, "path"), trueBytes(&e.Target, l.Raw, "target"))
	if err != nil {
		return fmt.Errorf("%.80q: %w", l.Path, err)
	}
	if e.Mode = mode; mode.IsRegular() {
		e.Size, e.Digest = *l.Size, *l.Blake3
	}
	d.tree.Entries = append(d.tree.Entries, e)
	return nil
}

func (d *treeDecoder) notCovered(l *lineNotCovered) error {
	n := NotCovered{Path: l.Path, Reason: l.Reason}
	err := trueBytes(&n.Path, l.Raw, "path")
	if err == nil && !l.Reason.known() {
		err = fmt.Errorf("reason %.20q", l.Reason)
	}
	if err != nil {
		return fmt.Errorf("%.80q: %w", l.Path, err)
	}
	d.tree.NotCovered = append(d.tree.NotCovered, n)
	return nil
}

func pathsInto(to *[]string) func(*linePath) error {
	return func(l *linePath) error {
		if err := trueBytes(&l.Path, l.Raw, "path"); err != nil {
			return fmt.Errorf("%.80q: %w", l.Path, err)
		}
		*to = append(*to, l.Path)
		return nil
	}
}

// trueBytes makes of s raw[key], where that stands there. The two must agree but for what is not UTF-8.
func trueBytes(s *string, raw map[string][]byte, key string) error {
	b, ok := raw[key]
	if !ok {
		return nil
	}
	if shown, truly := tape.SafeString(string(b)); truly == nil || shown != *s {
		return fmt.Errorf("raw %s does not agree with %s", key, key)
	}
	*s = string(b)
	return nil
}
