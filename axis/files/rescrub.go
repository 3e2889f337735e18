package files

import (
	"cmp"
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
	var all []*Entry
	for _, t := range trees {
		for i := range t.Entries {
			all = append(all, &t.Entries[i])
		}
	}
	if changed, err = o.hideEntries(all); err != nil {
		return 0, err
	}
	for _, t := range trees {
		if hideNames(t, o.Late) {
			t.settle()
			changed++
		}
	}
	return changed, nil
}

// hideEntries hides what became known in the contents and attributes of entries, any of which may be nil or stand there twice. It
// returns how many contents changed.
func (o *LateOptions) hideEntries(all []*Entry) (changed int, err error) {
	type hidden struct {
		digest cas.Digest
		size   int64
		secret string // keyed digest of the content, which is the file's true bytes unless it is marked already
	}
	var mu sync.Mutex
	became := make(map[cas.Digest]hidden) // guarded by mu
	p := pool{workers: numWorkers(), progress: o.Progress}
	give := func(take func(*Entry)) error {
		known := make(map[cas.Digest]bool)
		for _, e := range all {
			if e != nil && !e.Digest.IsZero() && !known[e.Digest] {
				known[e.Digest] = true
				take(e)
			}
		}
		return nil
	}
	err = each(&p, give, func(_ int, e *Entry) error {
		if e.Size >= bigFile {
			p.big.Lock()
			defer p.big.Unlock()
		}
		p.bytes.Add(e.Size)
		stored, secret, err := o.hidden(o.Store.Get(e.Digest))
		if stored == nil || err != nil {
			return err
		}
		digest, err := lasting(o.Store).Put(stored)
		mu.Lock()
		defer mu.Unlock()
		became[e.Digest] = hidden{digest, int64(len(stored)), secret}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("files: %w", err)
	}
	done, changed := make(map[*Entry]bool), len(became)
	for _, e := range all {
		if e == nil || done[e] {
			continue
		}
		done[e] = true
		found, _ := parseAttrs(e.Attrs) // what cannot be read is left out
		if attrs := found.encode(o.Late); attrs != e.Attrs {
			e.Attrs = attrs
			changed++
		}
		if h, ok := became[e.Digest]; ok {
			e.Digest, e.Size, e.Secret = h.digest, h.size, cmp.Or(e.Secret, h.secret)
		}
	}
	return changed, nil
}

// hidden returns the form of a content without secrets, and the keyed digest of what it was; nil where it holds none, or is missing.
func (o *LateOptions) hidden(b []byte, err error) (stored []byte, secret string, _ error) {
	var missing *cas.MissingError
	if errors.As(err, &missing) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	if _, found := o.Late.Bytes(b); !found {
		return nil, "", nil
	}
	stored, _ = o.All.Bytes(b)
	return stored, o.All.KeyedDigest(b), nil
}

// HideLateRecord brings a file_write or file_delete into the form that it would have if what became known since had been
// known before, as HideLate does with trees. A record whose path or
// link holds a secret keeps neither, and says that it is ignored, for no tree has the path any more.
//
// The errors are those of the store; a content that is not there has nothing to hide.
func HideLateRecord(rec *tape.Record, o *LateOptions) error {
	h := &recordHider{o}
	switch k := rec.Kind.(type) {
	case *tape.FileWrite:
		err := errors.Join(h.content(&k.File), h.before(&k.File))
		h.names(rec, &k.File)
		return err
	case *tape.FileDelete:
		err := h.before(&k.File)
		h.names(rec, &k.File)
		return err
	}
	return nil
}

type recordHider struct {
	*LateOptions
}

// content hides what a file_write left.
func (h *recordHider) content(f *tape.File) error {
	p := f.Content
	if p == nil {
		p = &tape.Payload{Hash: f.ContentHash, Len: f.LenBytes}
	}
	stored, secret, err := h.hidden(p.Bytes(h.Store))
	if stored == nil || err != nil {
		return err
	}
	if f.Content, err = tape.MakePayload(h.Store, stored); err != nil {
		return err
	}
	f.ContentHash, f.LenBytes = f.Content.Hash, f.Content.Len
	f.ContentDigest = cas.Digest{} // of what stood there, on the tape of another producer
	markSecret(f, secret)
	return nil
}

// before hides what stood there before.
func (h *recordHider) before(f *tape.File) error {
	if f.Before == nil {
		return nil
	}
	stored, secret, err := h.hidden(f.Before.Bytes(h.Store))
	if stored == nil || err != nil {
		return err
	}
	if f.Before, err = tape.MakePayload(h.Store, stored); err == nil && f.ContentHash == (cas.Digest{}) {
		markSecret(f, secret)
	}
	return err
}

// markSecret marks f, unless it was marked when it was taken: the keyed digest is that of the true bytes.
func markSecret(f *tape.File, secret string) {
	if secretOf(f) == "" {
		f.Extra = append(f.Extra, secretField(&Entry{Secret: secret})...)
	}
}

// names hides a path, and sees to it that no tree is made of the record then.
func (h *recordHider) names(rec *tape.Record, f *tape.File) {
	path, found := h.Late.Bytes([]byte(f.Path))
	link := f.Mode == Link.Git()
	if !found && (!link || secretOf(f) == "") {
		return
	}
	f.Path = string(path)
	rec.Raw = slices.DeleteFunc(rec.Raw, func(r tape.RawBytes) bool { return r.Key == "path" })
	if tape.FieldValue(f.Extra, ignoredKey) == nil {
		f.Extra = append(f.Extra, tape.Field{Name: ignoredKey, Value: []byte("true")})
	}
}

// InTree reports whether a record is about a file of the work tree that its patch covers.
func InTree(f *tape.File) bool {
	return !elsewhere(f.Path) && tape.FieldValue(f.Extra, ignoredKey) == nil
}
