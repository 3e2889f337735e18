package files

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A recorder turns changes into records of the kinds file_write and file_delete, one a path; only Kind and Raw are set. A change of
// mode or attributes alone is a file_write with the same content. The content of a symbolic link is its target, that of a directory
// or FIFO is empty, and a file_delete of one has its mode. A record of a secret file has the further key "secret", the keyed digest
// of the true bytes, one of a path with extended attributes has "xattrs". The contents are in store, whose errors are its own.
type recorder struct {
	store  cas.Store
	prefix string // stands before each path, as JournalRoot.Prefix
	hand   inHand
}

// place returns the path of a record. One of the work tree that would read as another root's gets "./" before it.
func (r *recorder) place(path string) string {
	if r.prefix == "" && elsewhere(path) {
		return "./" + path
	}
	return r.prefix + path
}

// elsewhere reports whether the path of a record lies outside the work tree.
func elsewhere(path string) bool {
	return strings.HasPrefix(path, "~/") || strings.HasPrefix(path, "$TMP/") || strings.HasPrefix(path, "/")
}

// inHand is what is known of one content without asking the store.
type inHand struct {
	digest cas.Digest
	text   *string // nil where it is not at hand
}

// between returns the record of a path at which stood before and stands after, each nil for nothing, not both.
func (r *recorder) between(path string, before, after *Entry) (rec tape.Record, err error) {
	var f tape.File
	var raw []byte
	f.Path, raw = tape.SafeString(r.place(path))
	if raw != nil {
		rec.Raw = []tape.RawBytes{{Key: "path", Bytes: raw}}
	}
	if before != nil && !before.isPlace() {
		if f.Before, err = r.payload(before); err != nil {
			return rec, err
		}
	}
	if after == nil {
		f.Extra = secretField(before)
		if before != nil && before.isPlace() {
			f.Mode = before.Mode.Taped()
		}
		rec.Kind = &tape.FileDelete{File: f}
		return rec, nil
	}
	if err := r.content(&f, after); err != nil {
		return rec, err
	}
	rec.Kind = &tape.FileWrite{File: f}
	return rec, nil
}

// content fills in what a file_write says about the new state.
func (r *recorder) content(f *tape.File, e *Entry) error {
	p, err := r.payload(e)
	if err != nil {
		return err
	}
	f.Content, f.ContentHash, f.LenBytes = p, p.Hash, p.Len
	f.Mode = e.Mode.Taped()
	f.Extra = secretField(e)
	if e.Attrs != "" {
		f.Extra = append(f.Extra, tape.Field{Name: attrsKey, Value: []byte(e.Attrs)})
	}
	return nil
}

// payload returns the payload of a file or link. Only what may stand in the record itself is read.
func (r *recorder) payload(e *Entry) (*tape.Payload, error) {
	switch {
	case e.isPlace():
		return tape.MakePayload(r.store, nil)
	case e.Mode.IsRegular() && e.Size > tape.InlineLimit:
		return &tape.Payload{Hash: e.Digest, Len: e.Size}, nil
	}
	if e.Mode.IsLink() {
		if _, err := r.store.Put([]byte(e.Target)); err != nil {
			return nil, err
		}
		return tape.MakePayload(r.store, []byte(e.Target))
	}
	if r.hand.text != nil && r.hand.digest == e.Digest {
		return &tape.Payload{Hash: e.Digest, Len: e.Size, Text: *r.hand.text, Inline: true}, nil
	}
	b, done, err := borrowBlob(r.store, e.Digest, e.Size)
	if err != nil {
		return nil, err
	}
	defer done()
	p := &tape.Payload{Hash: e.Digest, Len: int64(len(b))}
	if utf8.Valid(b) {
		p.Text, p.Inline = string(b), true
	}
	return p, nil
}

const (
	// attrsKey is the key of a file record that has the extended attributes, as Entry.Attrs.
	attrsKey = "xattrs"
	// secretKey is the key of a file record that marks a secret file.
	secretKey = "secret"
	// ignoredKey is that of a path which lies in the work tree but is none of its snapshot's: After, Holds and a patch pass it
	// over, and what records said before of it counts no more.
	ignoredKey = "ignored"
)

// ConversationKey is the key of a file record that numbers the conversation with a server which changed the file.
const ConversationKey = "conversation"

// ConversationOf returns that number; 0 where the program itself made the change, and for other kinds.
func ConversationOf(k tape.Kind) uint64 {
	f := tape.ChangedFile(k)
	if f == nil {
		return 0
	}
	n, _ := tape.FieldNumber(f.Extra, ConversationKey)
	return n
}

func secretField(e *Entry) []tape.Field {
	if e == nil || e.Secret == "" {
		return nil
	}
	v, err := json.Marshal(e.Secret)
	if err != nil {
		return nil // a string always has a JSON form
	}
	return []tape.Field{{Name: secretKey, Value: v}}
}

// After returns the tree that the file_write and file_delete records of a run make of the tree that it found, in the
// order of the records; other kinds, and paths outside the work tree ("~/…", "$TMP/…", absolute), are passed over. A record
// that is marked as of an ignored path makes the path again what before has there, nothing as a rule: what earlier records
// said of it counts no more. Directories of which no record tells get mode 0755. Changes of both trees are what the run did as
// a whole.
//
// Where store is a Staging the contents that stand in the records themselves are put into it: a recording has no blobs of them.
//
// Errors: a path that is not clean (ErrPath), a mode that is none, a link whose target is not in store, and those of the
// sequence.
func After(before *Tree, records iter.Seq2[*tape.Record, error], store cas.Store) (*Tree, error) {
	b := newTreeBuilder(before, store)
	b.staging, _ = store.(*Staging)
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if err := b.play(rec); err != nil {
			return nil, fmt.Errorf("files: record %d: %w", rec.Seq, err)
		}
	}
	return b.tree(), nil
}

func (b *treeBuilder) play(rec *tape.Record) error {
	f := tape.ChangedFile(rec.Kind)
	if f == nil {
		return nil
	}
	path, ok := pathIn(rec, f)
	if !ok {
		return nil
	}
	if err := checkPath(path); err != nil {
		return err
	}
	ignored := isIgnoredRecord(f)
	if ignored || rec.Kind.Name() == "file_delete" {
		b.remove(path)
		if ignored {
			b.restore(path)
		}
		return nil
	}
	e, err := b.entry(path, f)
	if err != nil {
		return err
	}
	if was := b.get(path); was == nil || !was.Mode.IsDir() || !e.Mode.IsDir() {
		b.remove(path)
	}
	b.put(e)
	return b.stage(f)
}

// isIgnoredRecord reports whether f is of a path that the snapshots do not cover.
func isIgnoredRecord(f *tape.File) bool {
	return string(tape.FieldValue(f.Extra, ignoredKey)) == "true"
}

// pathIn returns the path in the work tree that a record is about; ok is false for one outside of it.
func pathIn(rec *tape.Record, f *tape.File) (path string, ok bool) {
	path = truePath(rec, f)
	return strings.TrimPrefix(path, "./"), !elsewhere(path)
}

// truePath is the path of f, whose record is rec, byte for byte.
func truePath(rec *tape.Record, f *tape.File) string {
	for _, raw := range rec.Raw {
		if raw.Key == "path" {
			return string(raw.Bytes)
		}
	}
	return f.Path
}

// Holds reports whether a file_write left of its path what t holds there: the same bytes, mode and attributes. A record of another kind, of a path outside the work tree, or of an ignored one, leaves nothing.
func (t *Tree) Holds(rec *tape.Record) bool {
	w, ok := rec.Kind.(*tape.FileWrite)
	if !ok {
		return false
	}
	path, ok := pathIn(rec, &w.File)
	if !ok || isIgnoredRecord(&w.File) {
		return false
	}
	e, ok := t.Lookup(path)
	switch {
	case !ok || e.Mode.Taped() != w.Mode || e.Secret != secretOf(&w.File) || e.Attrs != attrsOf(&w.File):
		return false
	case w.IsPlace():
		return true
	case e.Mode.IsLink():
		return cas.Sum([]byte(e.Target)) == w.ContentHash
	}
	return e.Secret != "" || e.Digest == w.ContentHash
}

// entry returns what a file_write says stands at path; of a file_delete the mode counts at most.
func (b *treeBuilder) entry(path string, f *tape.File) (e *Entry, err error) {
	mode := Regular | 0o644
	if f.Mode != "" {
		if mode, err = ParseMode(f.Mode); err != nil {
			return nil, err
		}
	}
	e = &Entry{Path: path, Mode: mode, Attrs: attrsOf(f)}
	switch {
	case mode.IsLink():
		e.Mode = Link | 0o777
		e.Target, err = b.target(f)
	case mode.IsRegular():
		e.Digest, e.Size, e.Secret = f.ContentHash, f.LenBytes, secretOf(f)
	}
	return e, err
}

// attrsOf returns the extended attributes of which f tells.
func attrsOf(f *tape.File) string { return string(tape.FieldValue(f.Extra, attrsKey)) }

// stage keeps a content that stands in its record.
func (b *treeBuilder) stage(f *tape.File) error {
	if b.staging == nil || f.Content == nil || !f.Content.Inline {
		return nil
	}
	got, err := b.staging.Put([]byte(f.Content.Text))
	if err == nil && got != f.ContentHash {
		err = &cas.CorruptError{Digest: f.ContentHash, Got: got}
	}
	return err
}

// target returns what a link points to.
func (b *treeBuilder) target(f *tape.File) (string, error) {
	if f.Content != nil && f.Content.Inline {
		return f.Content.Text, nil
	}
	t, err := b.store.Get(f.ContentHash)
	if err == nil && (len(t) == 0 || len(t) > maxPathLen) {
		err = fmt.Errorf("files: a link of %d bytes", len(t))
	}
	return string(t), err
}

// secretOf returns the keyed digest that marks f as secret, "" for none. A mark that cannot be read still marks.
func secretOf(f *tape.File) string {
	raw := tape.FieldValue(f.Extra, secretKey)
	if raw == nil {
		return ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || s == "" {
		return "unreadable"
	}
	return s
}

// A treeBuilder is a tree, and what records make of it. It holds what differs.
type treeBuilder struct {
	before *Tree
	differ map[string]*Entry // nil for what is gone
	store  cas.Store

	staging *Staging // takes the contents that stand in records; nil where they are there
}

func newTreeBuilder(before *Tree, store cas.Store) *treeBuilder {
	return &treeBuilder{before: before, differ: make(map[string]*Entry), store: store}
}

// get returns what stands at path, nil for nothing.
func (b *treeBuilder) get(path string) *Entry {
	if e, ok := b.differ[path]; ok {
		return e
	}
	return b.before.at(path)
}

// remove forgets path and, where it is a directory that something else replaces, what lies in it.
func (b *treeBuilder) remove(path string) {
	e := b.get(path)
	if e != nil && e.Mode.IsDir() {
		for p := range b.differ {
			if under(p, path) {
				b.differ[p] = nil
			}
		}
		for _, e := range b.before.below(path) {
			b.differ[e.Path] = nil
		}
	}
	b.differ[path] = nil
}

// put puts e where nothing stands, in directories.
func (b *treeBuilder) put(e *Entry) {
	b.differ[e.Path] = e
	for p := parentOf(e.Path); p != ""; p = parentOf(p) {
		if up := b.get(p); up == nil || !up.Mode.IsDir() {
			b.differ[p] = &Entry{Path: p, Mode: Dir | 0o755}
		}
	}
}

// restore makes path, and all below, again what it was before, unless something that is no directory stands in the way.
func (b *treeBuilder) restore(path string) {
	e, ok := b.before.Lookup(path)
	if !ok {
		return
	}
	for p := parentOf(path); p != ""; p = parentOf(p) {
		if up := b.get(p); up != nil && !up.Mode.IsDir() {
			return
		}
	}
	b.put(e)
	for p := range b.differ {
		if p != path && under(p, path) {
			delete(b.differ, p)
		}
	}
}

// tree returns what has become of the tree.
func (b *treeBuilder) tree() *Tree {
	t := &Tree{Root: b.before.Root, MTime: b.before.MTime, NotCovered: b.before.NotCovered, Entries: make([]Entry, 0, len(b.before.Entries)+len(b.differ))}
	for i := range b.before.Entries {
		if _, ok := b.differ[b.before.Entries[i].Path]; !ok {
			t.Entries = append(t.Entries, b.before.Entries[i])
		}
	}
	for _, e := range b.differ {
		if e != nil {
			t.Entries = append(t.Entries, *e)
		}
	}
	slices.SortFunc(t.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return t
}
