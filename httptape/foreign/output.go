package foreign

import (
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

// An output is a tape on its way to its name. Its blobs lie in their place from the beginning, which changes nothing as long as no
// tape names them.
type output struct {
	path   string
	file   *durable.File // nil once it has its name, or is gone
	w      *tape.Writer
	store  *cas.Dir
	shared bool                // the store was there before: an import that was killed left it, or somebody else uses it
	there  map[cas.Digest]bool // blobs that are in the store; true for those that this output put there
	seq    uint64
}

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

func newOutput(path string, rules int, from *Report, sync bool) (*output, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	store, err := cas.OpenDir(path+tape.StoreSuffix, &cas.DirOptions{Sync: sync})
	if err != nil {
		return nil, err
	}
	f, err := durable.Create(dir, &durable.Options{Mode: outMode, Sync: sync})
	if err != nil {
		return nil, err
	}
	_, err = os.Lstat(path + tape.StoreSuffix)
	o := &output{
		path: path, file: f, store: store, there: make(map[cas.Digest]bool), shared: err == nil,
	}
	header := &tape.Header{
		Producer: "tapedeck import " + from.Format + " " + version.Version, Argv: []string{},
		Extra: []tape.Field{bare.RulesField(rules)},
	}
	if o.w, err = tape.NewWriter(f, header); err != nil {
		o.discard()
		return nil, err
	}
	return o, nil
}

// add appends a record, and brings the blobs that it names over from a store.
func (o *output) add(r *tape.Record, from cas.Store) error {
	r.Seq = o.seq
	for _, p := range tape.Payloads(r.Kind) {
		if _, there := o.there[p.Hash]; p.Inline || there {
			continue
		}
		b, err := from.Get(p.Hash)
		if err != nil {
			return err
		}
		o.there[p.Hash] = !o.shared || !o.holds(p.Hash)
		if _, err := o.store.Put(b); err != nil {
			return err
		}
	}
	if err := o.w.Append(r); err != nil {
		return err
	}
	o.seq++
	return nil
}

// holds reports whether something stands in a blob's place.
func (o *output) holds(d cas.Digest) bool {
	_, err := os.Lstat(o.store.Path(d))
	return err == nil
}

// commit gives the tape its name.
func (o *output) commit() error {
	if err := o.w.Flush(); err != nil {
		return err
	}
	if err := checkOut(o.path); err != nil { // somebody else was faster
		return err
	}
	f := o.file
	o.file = nil
	if err := f.Commit(o.path); err != nil {
		o.sweep()
		return err
	}
	return nil
}

// discard takes away what an output that has no name yet left; nothing of one that has.
func (o *output) discard() {
	if o.file == nil {
		return
	}
	o.file.Discard()
	o.file = nil
	o.sweep()
}

// sweep removes the blobs that this output made.
func (o *output) sweep() {
	for d, ours := range o.there {
		if ours {
			_ = os.Remove(o.store.Path(d))
		}
	}
	_ = os.Remove(o.path + tape.StoreSuffix) // stays where something else lies in it
}
