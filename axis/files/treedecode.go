package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Bounds of the decoder: bytes of one value, and entries of one tree.
const (
	maxValueLen = 1 << 16
	maxEntries  = 1 << 22
)

// ErrTree is wrapped by every refusal of a text that is no valid tree.json.
var ErrTree = errors.New("not a valid tree")

// DecodeTree reads a tree.json. It refuses, with an error that wraps ErrTree and names the entry: another version, keys
// that it does not know, paths that are not clean and relative (also ErrPath), entries out of order, given twice, or
// without their parent directory before them, and values over 64 KiB. Memory is bounded by the number of entries.
func DecodeTree(r io.Reader) (*Tree, error) {
	b := &budgetReader{r: r}
	d := &treeDecoder{json: json.NewDecoder(b), budget: b, tree: &Tree{}}
	d.json.DisallowUnknownFields()
	if err := d.document(); err != nil {
		var fault *readError
		if errors.As(err, &fault) {
			return nil, fault.err
		}
		return nil, fmt.Errorf("files: tree.json: %w: %w", ErrTree, err)
	}
	if err := d.tree.Validate(); err != nil {
		return nil, err
	}
	return d.tree, nil
}

type treeDecoder struct {
	json   *json.Decoder
	budget *budgetReader
	tree   *Tree
}

// document reads {"version":…,"root":…,"entries":[…],"not_covered":[…]}, keys in this order; "mtime_ns" and "partial":true may stand before
// the entries, "absent":[…] and "moved":[…] at the end.
func (d *treeDecoder) document() error {
	var raw map[string][]byte
	steps := []func() error{
		func() error { return d.delim('{') },
		d.version,
		func() error { return d.keyed("root", &d.tree.Root) },
		func() error {
			return d.options("entries", map[string]any{"raw": &raw, "mtime_ns": &d.tree.MTime, "partial": &d.tree.Partial})
		},
		func() error { return d.list(d.entry) },
		func() error { return d.key("not_covered") },
		func() error { return d.list(d.notCovered) },
		d.paths,
		func() error { return d.delim('}') },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	root, err := trueBytes(raw, "root", d.tree.Root)
	if err != nil {
		return err
	}
	d.tree.Root = root
	return d.end()
}

// end refuses anything but white space behind the document.
func (d *treeDecoder) end() error {
	d.budget.left = maxValueLen
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its end")
	}
	return nil
}

func (d *treeDecoder) version() error {
	var v int
	if err := d.keyed("version", &v); err != nil {
		return err
	}
	if v != TreeVersion {
		return fmt.Errorf("version %d, this reads version %d", v, TreeVersion)
	}
	return nil
}

func (d *treeDecoder) delim(want json.Delim) error {
	d.budget.left = maxValueLen
	tok, err := d.json.Token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("wants %q at byte %d", want.String(), d.json.InputOffset())
	}
	return nil
}

func (d *treeDecoder) key(want string) error {
	got, err := d.anyKey()
	if err == nil && got != want {
		err = fmt.Errorf("wants the key %q at byte %d", want, d.json.InputOffset())
	}
	return err
}

func (d *treeDecoder) anyKey() (string, error) {
	d.budget.left = maxValueLen
	tok, err := d.json.Token()
	if err != nil {
		return "", err
	}
	name, _ := tok.(string)
	return name, nil
}

func (d *treeDecoder) keyed(key string, v any) error {
	if err := d.key(key); err != nil {
		return err
	}
	d.budget.left = maxValueLen
	return d.json.Decode(v)
}

// options reads those of the keys that stand there, each at most once, then the key that must follow.
func (d *treeDecoder) options(next string, keys map[string]any) error {
	for {
		got, err := d.anyKey()
		if err != nil || got == next {
			return err
		}
		v, ok := keys[got]
		if !ok {
			return fmt.Errorf("wants the key %q at byte %d", next, d.json.InputOffset())
		}
		delete(keys, got)
		d.budget.left = maxValueLen
		if err := d.json.Decode(v); err != nil {
			return err
		}
	}
}

// paths reads the last lists, those that stand there, each at most once.
func (d *treeDecoder) paths() error {
	lists := map[string]*[]string{"absent": &d.tree.Absent, "moved": &d.tree.Moved}
	for {
		d.budget.left = maxValueLen
		if !d.json.More() {
			return nil
		}
		key, err := d.anyKey()
		if err != nil {
			return err
		}
		to, ok := lists[key]
		if !ok {
			return fmt.Errorf("the key %q at byte %d is not one of those that may stand there", key, d.json.InputOffset())
		}
		delete(lists, key)
		if err := d.list(func() error { return d.path(key, to) }); err != nil {
			return err
		}
	}
}

// path reads an item of a list of paths.
func (d *treeDecoder) path(key string, to *[]string) error {
	var l linePath
	if err := d.json.Decode(&l); err != nil {
		return err
	}
	p, err := trueBytes(l.Raw, "path", l.Path)
	if err != nil {
		return fmt.Errorf("%s %.80q: %w", key, l.Path, err)
	}
	*to = append(*to, p)
	return nil
}

func (d *treeDecoder) list(item func() error) error {
	if err := d.delim('['); err != nil {
		return err
	}
	for n := 0; ; n++ {
		d.budget.left = maxValueLen
		if !d.json.More() {
			break
		}
		if n == maxEntries {
			return fmt.Errorf("more than %d entries", maxEntries)
		}
		if err := item(); err != nil {
			return err
		}
	}
	return d.delim(']')
}

func (d *treeDecoder) entry() error {
	var l lineEntry
	if err := d.json.Decode(&l); err != nil {
		return err
	}
	e, err := l.entry()
	if err != nil {
		return fmt.Errorf("entry %.80q: %w", l.Path, err)
	}
	d.tree.Entries = append(d.tree.Entries, e)
	return nil
}

func (d *treeDecoder) notCovered() error {
	var l lineNotCovered
	if err := d.json.Decode(&l); err != nil {
		return err
	}
	p, err := trueBytes(l.Raw, "path", l.Path)
	if err == nil && !l.Reason.known() {
		err = fmt.Errorf("reason %.20q", l.Reason)
	}
	if err != nil {
		return fmt.Errorf("not covered %.80q: %w", l.Path, err)
	}
	d.tree.NotCovered = append(d.tree.NotCovered, NotCovered{Path: p, Reason: l.Reason})
	return nil
}

func (r Reason) known() bool {
	switch r {
	case Ignored, TooLarge, Special, Unreadable, Excluded, SecretName, TooMany, Linked:
		return true
	}
	return false
}

// entry checks l and returns what it says.
func (l *lineEntry) entry() (Entry, error) {
	var e Entry
	var err error
	if e.Path, err = trueBytes(l.Raw, "path", l.Path); err != nil {
		return e, err
	}
	if e.Target, err = trueBytes(l.Raw, "target", l.Target); err != nil {
		return e, err
	}
	if e.Mode, err = ParseMode(l.Mode); err != nil {
		return e, err
	}
	e.Secret, e.MTime, e.Attrs = l.Secret, l.MTime, string(l.Xattrs)
	if l.Size != nil {
		e.Size = *l.Size
	}
	if l.Blake3 != nil {
		e.Digest = *l.Blake3
	}
	return e, l.check(&e)
}

// check refuses keys that do not belong to the type of e, and types without their keys.
func (l *lineEntry) check(e *Entry) error {
	file := e.Mode.IsRegular()
	if file != (l.Blake3 != nil) || file != (l.Size != nil) {
		return errors.New("size and blake3 belong to each regular file and to nothing else")
	}
	return nil
}

// trueBytes returns raw[key] where it stands, else s. The two must agree but for what is not UTF-8.
func trueBytes(raw map[string][]byte, key, s string) (string, error) {
	b, ok := raw[key]
	if !ok {
		return s, nil
	}
	if shown, truly := tape.SafeString(string(b)); truly == nil || shown != s {
		return "", fmt.Errorf("raw %s does not agree with %s", key, key)
	}
	return string(b), nil
}

// A budgetReader fails once it has given left bytes; its user sets left before each value, so that a hostile value
// cannot make the JSON decoder hold more.
type budgetReader struct {
	r    io.Reader
	left int
}

// A readError marks a failure of the source, which is no fault of the text.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

func (b *budgetReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("a value of more than %d bytes", maxValueLen)
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil && err != io.EOF {
		err = &readError{err: err}
	}
	return n, err
}
