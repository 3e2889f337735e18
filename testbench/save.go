package testbench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// replaced are the permissions of a file that takes the place of another.
var replaced = &durable.Options{Mode: 0o644}

// replace puts a file at path, or where a link there leads: whatever kills the run, the old one is there, or all of the new one.
func replace(path string, content []byte) error {
	target, err := regular.Target(path)
	if err != nil {
		return err
	}
	return durable.WriteFile(target, content, replaced)
}

// Save writes the run's tape to path and its payloads beside it, as Config.Emit does. A tape that stands there is replaced, whole: whatever
// kills the program, the old one is there or the new one, each with its payloads.
func (b *Bench) Save(path string) error {
	header, records, err := b.tape()
	if err != nil {
		return err
	}
	target, err := regular.Target(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	dir := path + tape.StoreSuffix
	blobs, err := cas.OpenDir(dir, nil)
	if err != nil {
		return err
	}
	f, err := durable.Create(filepath.Dir(target), replaced)
	if err != nil {
		return err
	}
	kept, err := saveRecords(f, header, records, b.out.store, blobs)
	if err != nil {
		f.Discard()
		return fmt.Errorf("save %s: %w", path, err)
	}
	if err := f.Commit(target); err != nil {
		return err
	}
	return removeBlobs(blobs, dir, kept)
}

// saveRecords writes a tape, each blob before the record that names it, and returns which blobs those are.
func saveRecords(to io.Writer, h *tape.Header, records []*tape.Record, from, blobs cas.Store) (map[cas.Digest]bool, error) {
	w, err := tape.NewWriter(to, h)
	if err != nil {
		return nil, err
	}
	kept := make(map[cas.Digest]bool)
	for _, rec := range records {
		if err := saveBlobs(rec, from, blobs, kept); err != nil {
			return nil, err
		}
		if err := w.Append(rec); err != nil {
			return nil, err
		}
	}
	return kept, w.Flush()
}

func saveBlobs(rec *tape.Record, from, to cas.Store, kept map[cas.Digest]bool) error {
	for _, p := range tape.Payloads(rec.Kind) {
		if p.Inline || kept[p.Hash] {
			continue
		}
		b, err := from.Get(p.Hash)
		if err != nil {
			return err
		}
		if _, err := to.Put(b); err != nil {
			return err
		}
		kept[p.Hash] = true
	}
	return nil
}
