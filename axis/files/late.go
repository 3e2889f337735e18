package files

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// LateOptions say what HideLate looks for. Store, Late and All are needed.
type LateOptions struct {
	Store cas.Store // of both trees
	Late  Scrubber  // finds what became known after the trees were taken, and nothing else
	All   Scrubber  // finds everything: a file in which Late finds something gets the form that this one gives it
	// Progress, when not nil, is called now and then, and at the end, with the number of contents looked through and their
	// bytes, never by two goroutines at once.
	Progress func(files int, bytes int64)
}

// HideLate brings trees into the form that they would have if what became known after they were taken had been known before:
// a file that holds such a secret is marked with the keyed digest of its true bytes, its scrubbed form is put into the
// store, and a path or a link's target with one in it is left out and listed. It returns how many contents and lists changed.
// The contents that the trees no longer name stay in the store.
//
// Each content is read once, however many files have it. The errors are those of the store; one that is not there has
// nothing to hide.
func HideLate(o *LateOptions, trees ...*Tree) (changed int, err error) {
	h := &hider{o: o, hidden: make(map[cas.Digest]hiddenFile)}
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
	if o.Progress != nil {
		o.Progress(h.done, h.bytes)
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

// A hider looks through contents. Its workers share the list by an atomic index.
type hider struct {
	o        *LateOptions
	contents []content
	known    map[cas.Digest]bool
	next     atomic.Int64
	big      sync.Mutex // held while a long file is in memory: one at a time

	mu     sync.Mutex // guards what follows, and is held while Progress is called
	hidden map[cas.Digest]hiddenFile
	done   int
	bytes  int64
	err    error
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
	if h.known == nil {
		h.known = make(map[cas.Digest]bool)
	}
	was := h.known[d]
	h.known[d] = true
	return was
}

// all looks through every content. It owns its workers and returns when all have ended.
func (h *hider) all() error {
	var wg sync.WaitGroup
	for range min(max(numCPU(), 2), 4) {
		wg.Go(func() {
			for {
				i := int(h.next.Add(1)) - 1
				if i >= len(h.contents) || !h.finish(&h.contents[i], h.one(&h.contents[i])) {
					return
				}
			}
		})
	}
	wg.Wait()
	return h.err
}

// finish counts one content and reports whether to go on.
func (h *hider) finish(c *content, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
	h.done, h.bytes = h.done+1, h.bytes+c.size
	if h.o.Progress != nil && h.done%progressEvery == 0 {
		h.o.Progress(h.done, h.bytes)
	}
	return h.err == nil
}

func (h *hider) one(c *content) error {
	if c.size >= bigFile {
		h.big.Lock()
		defer h.big.Unlock()
	}
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
	if out.digest, err = h.o.Store.Put(stored); err != nil {
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
