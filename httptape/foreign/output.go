package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// outMode is the permission of a tape: a file of a project as any other.
const outMode = 0o644

// checkOut returns the error of a tape that is there: nothing is written over.
func checkOut(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%s: %w: remove it with %s, or name another", path, fs.ErrExist, filepath.Base(path)+tape.StoreSuffix)
	}
	return nil
}

// keep writes the tape and its blobs, or nothing. The blobs come first: they change nothing as long as no tape names them.
func (m *maker) keep(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	store, err := cas.OpenDir(path+tape.StoreSuffix, &cas.DirOptions{Sync: m.opts.Sync})
	if err != nil {
		return err
	}
	put := make(map[cas.Digest]bool) // true for what was not there before
	defer func() {
		if err == nil {
			return
		}
		for d, ours := range put {
			if ours {
				_ = os.Remove(store.Path(d))
			}
		}
		_ = os.Remove(path + tape.StoreSuffix) // stays where something else lies in it
	}()
	var text bytes.Buffer
	w, err := tape.NewWriter(&text, &tape.Header{
		Producer: "tapedeck import " + m.of.name + " " + version.Version, Argv: []string{}, Extra: []tape.Field{bare.RulesField(m.scrub.Rules())},
	})
	if err != nil {
		return err
	}
	for i, r := range m.records {
		for _, p := range tape.Payloads(r.Kind) {
			if _, done := put[p.Hash]; p.Inline || done {
				continue
			}
			_, missing := os.Lstat(store.Path(p.Hash))
			put[p.Hash] = missing != nil
			if err := copyBlob(p.Hash, m.store, store); err != nil {
				return err
			}
		}
		r.Seq = uint64(i)
		if err := w.Append(r); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Flush(), checkOut(path)); err != nil { // somebody else may have been faster
		return err
	}
	return durable.WriteFile(path, text.Bytes(), &durable.Options{Mode: outMode, Sync: m.opts.Sync})
}

func copyBlob(d cas.Digest, from, to cas.Store) error {
	b, err := from.Get(d)
	if err == nil {
		_, err = to.Put(b)
	}
	return err
}
