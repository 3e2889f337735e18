package files

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// LateOptions say what HideLate looks for. Store, Late and All are needed.
type LateOptions struct {
	Store cas.Store // of all trees; of a Staging, what is put goes below
	Late  Scrubber  // finds what became known after the trees were taken, and nothing else
	All   Scrubber  // finds everything: a file in which Late finds something gets the form that this one gives it
	// Progress, when not nil, is called now and then, and at the end, with the number of contents looked through and their
	// bytes, never by two goroutines at once.
	Progress func(files int, bytes int64)
}

// HideLate brings trees, partial ones too, into the form that they would have if what became known after they were taken had been known before:
// a file that holds such a secret is marked with the keyed digest of its true bytes, its scrubbed form is put into the
// store, and a path or a link's target with one in it is left out and listed. It returns how many contents and lists changed.
// The contents that the trees no longer name stay in the store.
//
// Each content is read once, however many files have it. The errors are those of the store; one that is not there has
// nothing to hide.
func HideLate(o *LateOptions, trees ...*Tree) (changed int, err error) {
	h := &hider{
		o: o, pool: pool{workers: numWorkers(), progress: o.Progress}, known: make(map[cas.Digest]bool), hidden: make(map[cas.Digest]hiddenFile),
	}
	for _, t := range trees {
		for i := range t.Entries {
			if d := t.Entries[i].Digest; !d.IsZero() && !h.seen(d) {
				h.contents = append(h.contents, content{d, t.Entries[i].Size})
			}
		}
	}
	if err := h.all(); err != nil {
		return 0, fmt.Errorf("files: %w", err)
	}
	changed = len(h.hidden)
	for _, t := range trees {
		h.mark(t)
		if hideNames(t, o.Late) {
			t.settle()
			changed++
		}
	}
	return changed, nil
}

// A hider looks through contents.
type hider struct {
	o        *LateOptions
	contents []content
	known    map[cas.Digest]bool
	pool     pool

	mu     sync.Mutex
	hidden map[cas.Digest]hiddenFile // guarded by mu
}

type content struct {
	digest cas.Digest
	size   int64
}

// A hiddenFile is what a content becomes.
type hiddenFile struct {
	digest cas.Digest
	size   int64
	secret string // keyed digest of the content, which is the file's true bytes unless it is marked already
}

// seen reports whether d was met before.
func (h *hider) seen(d cas.Digest) bool {
	was := h.known[d]
	h.known[d] = true
	return was
}

// all looks through every content.
func (h *hider) all() error {
	give := func(take func(content)) error {
		for _, c := range h.contents {
			take(c)
		}
		return nil
	}
	return each(&h.pool, give, func(_ int, c content) error { return h.one(c) })
}

func (h *hider) one(c content) error {
	if c.size >= bigFile {
		h.pool.big.Lock()
		defer h.pool.big.Unlock()
	}
	h.pool.bytes.Add(c.size)
	b, err := h.o.Store.Get(c.digest)
	var missing *cas.MissingError
	switch {
	case errors.As(err, &missing):
		return nil
	case err != nil:
		return err
	}
	if _, found := h.o.Late.Bytes(b); !found {
		return nil
	}
	stored, _ := h.o.All.Bytes(b)
	out := hiddenFile{size: int64(len(stored)), secret: h.o.All.KeyedDigest(b)}
	if out.digest, err = lasting(h.o.Store).Put(stored); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hidden[c.digest] = out
	return nil
}

// mark gives the files of t their new contents.
func (h *hider) mark(t *Tree) {
	for i := range t.Entries {
		e := &t.Entries[i]
		e.Attrs = hideAttrs(e.Attrs, h.o.Late)
		f, ok := h.hidden[e.Digest]
		if !ok || e.Digest.IsZero() {
			continue
		}
		e.Digest, e.Size = f.digest, f.size
		if e.Secret == "" {
			e.Secret = f.secret
		}
	}
}

// HideLateRecord brings a file_write or file_delete into the form that it would have if what became known since had been
// known before, as HideLate does with trees; masker, which may be nil, gives the new content_digest. A record whose path or
// link holds a secret keeps neither, and says that it is ignored, for no tree has the path any more.
//
// The errors are those of the store; a content that is not there has nothing to hide.
func HideLateRecord(rec *tape.Record, o *LateOptions, masker Masker) error {
	h := &recordHider{LateOptions: o, masker: masker}
	switch k := rec.Kind.(type) {
	case *tape.FileWrite:
		return errors.Join(h.content(&k.File), h.before(&k.File), h.names(rec, &k.File))
	case *tape.FileDelete:
		return errors.Join(h.before(&k.File), h.names(rec, &k.File))
	}
	return nil
}

type recordHider struct {
	*LateOptions
	masker Masker
}

// content hides what a file_write left.
func (h *recordHider) content(f *tape.File) error {
	p := f.Content
	if p == nil {
		p = &tape.Payload{Hash: f.ContentHash, Len: f.LenBytes}
	}
	stored, truth, err := h.hidden(p)
	if stored == nil || err != nil {
		return err
	}
	if f.Content, err = tape.MakePayload(h.Store, stored); err != nil {
		return err
	}
	f.ContentHash, f.LenBytes = f.Content.Hash, f.Content.Len
	if h.masker != nil {
		f.ContentDigest = h.masker.Digest(stored)
	}
	h.markSecret(f, truth)
	return nil
}

// before hides what stood there before.
func (h *recordHider) before(f *tape.File) error {
	if f.Before == nil {
		return nil
	}
	stored, truth, err := h.hidden(f.Before)
	if stored == nil || err != nil {
		return err
	}
	if f.Before, err = tape.MakePayload(h.Store, stored); err == nil && f.ContentHash == (cas.Digest{}) {
		h.markSecret(f, truth)
	}
	return err
}

// hidden returns the form of a payload without secrets, and its bytes as they are; nil where it holds none.
func (h *recordHider) hidden(p *tape.Payload) (stored, truth []byte, err error) {
	b, err := p.Bytes(h.Store)
	var missing *cas.MissingError
	if errors.As(err, &missing) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if _, found := h.Late.Bytes(b); !found {
		return nil, nil, nil
	}
	stored, _ = h.All.Bytes(b)
	return stored, b, nil
}

// markSecret marks f, unless it was marked when it was taken: the keyed digest is that of the true bytes.
func (h *recordHider) markSecret(f *tape.File, truth []byte) {
	if secretOf(f) == "" {
		f.Extra = append(f.Extra, secretField(&Entry{Secret: h.All.KeyedDigest(truth)})...)
	}
}

// names hides a path, and sees to it that no tree is made of the record then.
func (h *recordHider) names(rec *tape.Record, f *tape.File) error {
	path, found := h.Late.Bytes([]byte(f.Path))
	link := f.Mode == Link.Git()
	if !found && (!link || secretOf(f) == "") {
		return nil
	}
	f.Path = string(path)
	rec.Raw = slices.DeleteFunc(rec.Raw, func(r tape.RawBytes) bool { return r.Key == "path" })
	if tape.FieldValue(f.Extra, ignoredKey) == nil {
		f.Extra = append(f.Extra, tape.Field{Name: ignoredKey, Value: []byte("true")})
	}
	return nil
}

// InTree reports whether a record is about a file of the work tree that its patch covers.
func InTree(f *tape.File) bool {
	return !elsewhere(f.Path) && tape.FieldValue(f.Extra, ignoredKey) == nil
}

// HideLate brings what the journal keeps into the form that it would have if what became known since had been known before, as
// the function HideLate does with trees, and returns how much changed. It is called when the program has ended, before End.
func (j *Journal) HideLate(o *LateOptions) (changed int, err error) {
	var all []*kept
	var said []*Entry
	seen := make(map[*kept]bool)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.roots {
		r.node.each(func(n *node) {
			for _, k := range []*kept{n.start, n.last} {
				if k != nil && (k.mode.IsRegular() || k.attrs != "") && !seen[k] {
					seen[k] = true
					all = append(all, k)
				}
			}
		})
		if r.said == nil {
			continue
		}
		for _, e := range r.said.differ {
			if e != nil && (e.Mode.IsRegular() || e.Attrs != "") {
				said = append(said, e)
			}
		}
	}
	for _, it := range j.ended {
		it.masked = cas.Digest{} // it is of the content as it was
		if it.now != nil && it.now.mode.IsRegular() && !seen[it.now] {
			seen[it.now] = true
			all = append(all, it.now)
		}
	}
	t := &Tree{Entries: make([]Entry, len(all), len(all)+len(said))}
	for i, k := range all {
		t.Entries[i] = *k.entry("")
	}
	for _, e := range said {
		t.Entries = append(t.Entries, Entry{Mode: e.Mode, Digest: e.Digest, Size: e.Size, Secret: e.Secret, Attrs: e.Attrs})
	}
	if changed, err = HideLate(o, t); err != nil {
		return changed, err
	}
	for i, k := range all {
		*k = *keptOf(&t.Entries[i])
	}
	for i, e := range said {
		hidden := &t.Entries[len(all)+i]
		e.Digest, e.Size, e.Secret, e.Attrs = hidden.Digest, hidden.Size, hidden.Secret, hidden.Attrs
	}
	return changed, nil
}
