package files

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
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
