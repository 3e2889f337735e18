package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TreeVersion is the version of tree.json that this package writes and reads.
const TreeVersion = 1

// maxTree is how many bytes a tree.json may have.
const maxTree = 1 << 30

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

// A treeForm is the JSON form of a Tree, keys in the order of the file.
type treeForm struct {
	treeHead
	Entries    []lineEntry      `json:"entries"`
	NotCovered []lineNotCovered `json:"not_covered"`
	Absent     []linePath       `json:"absent"`
	Moved      []linePath       `json:"moved"`
}

type treeHead struct {
	Version int               `json:"version"`
	Root    string            `json:"root"`
	Raw     map[string][]byte `json:"raw,omitempty"`
	MTime   int64             `json:"mtime_ns,omitempty"`
	Partial bool              `json:"partial,omitempty"`
}

// Encode writes t as tree.json. The same tree gives the same bytes. Errors are those of w.
func (t *Tree) Encode(w io.Writer) error {
	e := &treeEncoder{w: bufio.NewWriterSize(w, 1<<16)}
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	head := treeHead{Version: TreeVersion, MTime: t.MTime, Partial: t.Partial}
	head.Root = safe(&head.Raw, "root", t.Root)
	e.w.Write(bytes.TrimSuffix(e.value(head), []byte("}")))
	e.list("entries", len(t.Entries), func(i int) any { return t.Entries[i].line() })
	e.list("not_covered", len(t.NotCovered), func(i int) any {
		l := lineNotCovered{Reason: t.NotCovered[i].Reason}
		l.Path = safe(&l.Raw, "path", t.NotCovered[i].Path)
		return l
	})
	e.paths("absent", t.Absent)
	e.paths("moved", t.Moved)
	e.w.WriteString("}\n")
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

// value is the JSON form of v, until the next call.
func (e *treeEncoder) value(v any) []byte {
	e.buf.Reset()
	e.err = errors.Join(e.err, e.json.Encode(v))
	return bytes.TrimSuffix(e.buf.Bytes(), []byte("\n"))
}

// list writes a list of n items, which has another member before it.
func (e *treeEncoder) list(key string, n int, item func(i int) any) {
	e.w.WriteString(`,"` + key + `":[`)
	for i := range n {
		if i > 0 {
			e.w.WriteByte(',')
		}
		e.w.WriteByte('\n')
		e.w.Write(e.value(item(i)))
	}
	e.w.WriteString("\n]")
}

// paths writes a list of paths, unless it is empty.
func (e *treeEncoder) paths(key string, paths []string) {
	if len(paths) == 0 {
		return
	}
	e.list(key, len(paths), func(i int) any {
		var l linePath
		l.Path = safe(&l.Raw, "path", paths[i])
		return l
	})
}

// DecodeTree reads a tree.json, up to 1 GiB. It refuses, with an error that wraps ErrTree and names the entry: another version, keys
// that it does not know or that stand there twice, paths that are not clean and relative (also ErrPath), entries out of order,
// given twice, or without their parent directory before them.
func DecodeTree(r io.Reader) (*Tree, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxTree+1))
	if err != nil {
		return nil, err
	}
	t, err := parseTree(text)
	if err != nil {
		return nil, fmt.Errorf("files: tree.json: %w: %w", ErrTree, err)
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return t, nil
}

func parseTree(text []byte) (*Tree, error) {
	if len(text) > maxTree {
		return nil, fmt.Errorf("it has more than %d bytes", maxTree)
	}
	if key, at, found := jsonscan.Duplicate(text); found {
		return nil, fmt.Errorf("the key %.80q at byte %d stands there twice", key, at)
	}
	var f treeForm
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	_, err := d.Token()
	switch {
	case !errors.Is(err, io.EOF):
		return nil, errors.New("there is more behind its end")
	case f.Version != TreeVersion:
		return nil, fmt.Errorf("version %d, this reads version %d", f.Version, TreeVersion)
	case f.Root == "" || f.Entries == nil || f.NotCovered == nil:
		return nil, errors.New("it has no root, no entries, or no not_covered")
	}
	return f.tree()
}

func (f *treeForm) tree() (_ *Tree, err error) {
	t := &Tree{Root: f.Root, MTime: f.MTime, Partial: f.Partial}
	errs := []error{trueBytes(&t.Root, f.Raw, "root")}
	t.Entries = make([]Entry, len(f.Entries))
	for i := range f.Entries {
		if t.Entries[i], err = f.Entries[i].entry(); err != nil {
			return nil, fmt.Errorf("%.80q: %w", f.Entries[i].Path, err)
		}
	}
	for _, l := range f.NotCovered {
		if !l.Reason.known() {
			errs = append(errs, fmt.Errorf("%.80q: reason %.20q", l.Path, l.Reason))
		}
		errs = append(errs, trueBytes(&l.Path, l.Raw, "path"))
		t.NotCovered = append(t.NotCovered, NotCovered{l.Path, l.Reason})
	}
	for _, l := range f.Absent {
		errs = append(errs, trueBytes(&l.Path, l.Raw, "path"))
		t.Absent = append(t.Absent, l.Path)
	}
	for _, l := range f.Moved {
		errs = append(errs, trueBytes(&l.Path, l.Raw, "path"))
		t.Moved = append(t.Moved, l.Path)
	}
	return t, errors.Join(errs...)
}

func (l *lineEntry) entry() (Entry, error) {
	e := Entry{Path: l.Path, Target: l.Target, Secret: l.Secret, MTime: l.MTime, Attrs: string(l.Xattrs)}
	var err error
	e.Mode, err = ParseMode(l.Mode)
	if file := e.Mode.IsRegular(); err == nil && (file != (l.Blake3 != nil) || file != (l.Size != nil)) {
		err = errors.New("size and blake3 belong to each regular file and to nothing else")
	}
	if err == nil && e.Mode.IsRegular() {
		e.Size, e.Digest = *l.Size, *l.Blake3
	}
	return e, errors.Join(err, trueBytes(&e.Path, l.Raw, "path"), trueBytes(&e.Target, l.Raw, "target"))
}

// trueBytes makes of s raw[key], where that stands there. The two must agree but for what is not UTF-8.
func trueBytes(s *string, raw map[string][]byte, key string) error {
	b, ok := raw[key]
	if !ok {
		return nil
	}
	if shown, truly := tape.SafeString(string(b)); truly == nil || shown != *s {
		return fmt.Errorf("%.80q: raw %s does not agree with it", *s, key)
	}
	*s = string(b)
	return nil
}

// attrPrefix begins the names of the extended attributes that are kept. Those of an overlay itself are none of a file's.
const (
	attrPrefix    = "user."
	overlayPrefix = "user.overlay."
)

// An attrSet is the extended attributes of one file; nil is the value of one that holds a secret.
type attrSet map[string][]byte

// encode returns the set as Entry.Attrs has it. A value that holds a secret is not kept.
func (a attrSet) encode(s Scrubber) string {
	if len(a) == 0 {
		return ""
	}
	if s != nil {
		for name, value := range a {
			if _, found := s.Bytes([]byte(name + "\n" + string(value))); found {
				a[name] = nil
			}
		}
	}
	b, err := json.Marshal(map[string][]byte(a)) // sorted by name; names that are no UTF-8 are not told apart
	if err != nil {
		return "" // strings and bytes always have a JSON form
	}
	return string(b)
}

var errAttrs = errors.New("xattrs is no object of names user.* with values in base64")

// parseAttrs reads what encode wrote, and nothing else.
func parseAttrs(text string) (attrSet, error) {
	if text == "" {
		return nil, nil
	}
	var a attrSet
	if err := json.Unmarshal([]byte(text), &a); err != nil || a.encode(nil) != text {
		return nil, errAttrs
	}
	for name := range a {
		if !isKeptAttr(name) {
			return nil, errAttrs
		}
	}
	return a, nil
}

// isKeptAttr reports whether an attribute of this name is kept.
func isKeptAttr(name string) bool {
	return strings.HasPrefix(name, attrPrefix) && len(name) > len(attrPrefix) && !strings.HasPrefix(name, overlayPrefix)
}
