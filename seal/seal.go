package seal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// TempPrefix begins the name of the directory that a seal is made in.
const TempPrefix = durable.TempPrefix + "seal-"

// Seal seals the recording in dir. It errs with what wraps ErrSealed where there is a seal and Replace was not asked for, and with
// ErrCannotSeal where something lies there that a seal cannot cover: a *Problem in it says what.
func Seal(ctx context.Context, dir string, o *Options) (*Document, error) {
	if o == nil || o.Key == nil {
		return nil, errors.New("seal: no key to sign with: LoadKey gives one")
	}
	if _, err := os.Lstat(filepath.Join(dir, FileName)); err == nil && !o.Replace {
		return nil, fmt.Errorf("%s: %w", dir, ErrSealed)
	}
	if err := removeTemporary(dir); err != nil {
		return nil, err
	}
	inv, err := take(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := inv.sealable(); err != nil {
		return nil, err
	}
	inv.manifest = o.Manifest
	id, err := inv.id(o.ID)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(dir, TempPrefix+"*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp) // nothing is in it where all went well
	d, err := inv.seal(ctx, temp, id, o)
	if err != nil {
		return nil, err
	}
	return d, place(dir, temp, d, o)
}

// removeTemporary takes away what a Seal that was killed left.
func removeTemporary(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), TempPrefix) && e.IsDir() {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// sealable errs for what a seal cannot cover.
func (inv *inventory) sealable() error {
	if len(inv.odd) > 0 {
		return fmt.Errorf("%s %w: %w", inv.dir, ErrCannotSeal, &inv.odd[0])
	}
	for _, s := range inv.sources {
		for _, f := range s.files {
			if base := f.Path[strings.LastIndexByte(f.Path, '/')+1:]; strings.HasPrefix(base, durable.TempPrefix) {
				p := problem(CodeUnlisted, f.Path, "a temporary file of a writer that runs or was killed: wait for it, or remove the file")
				return fmt.Errorf("%s %w: %w", inv.dir, ErrCannotSeal, p)
			}
		}
	}
	return nil
}

// maxManifest is how large a recording.json may be for its id to be read, in bytes.
const maxManifest = 64 << 20

// id returns the recording's id.
func (inv *inventory) id(given string) (string, error) {
	id, err := inv.manifestID()
	switch {
	case err != nil && (given == "" || !errors.Is(err, fs.ErrNotExist)):
		return "", fmt.Errorf("%s %w: no id: %w", inv.dir, ErrCannotSeal, err)
	case given != "" && id != "" && given != id:
		return "", fmt.Errorf("%s %w: it is recording %q, asked for was %q", inv.dir, ErrCannotSeal, id, given)
	case given != "":
		id = given
	}
	if !validID(id) {
		return "", fmt.Errorf("%s %w: the id %.80q: expected 1 to 200 bytes of UTF-8 without spaces and '+'", inv.dir, ErrCannotSeal, id)
	}
	return id, nil
}

// manifestID returns the id that recording.json says. The error wraps fs.ErrNotExist where there is none.
func (inv *inventory) manifestID() (string, error) {
	f, err := inv.open(manifest)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var m struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(&m); err != nil {
		return "", fmt.Errorf("%s: %w", manifest, err)
	}
	return m.ID, nil
}

// seal makes the seal in the directory temp.
func (inv *inventory) seal(ctx context.Context, temp, id string, o *Options) (*Document, error) {
	r := &reading{inv: inv, trustBlobs: o.TrustBlobs, progress: o.Progress}
	r.found = func(p *Problem) error { return fmt.Errorf("%s %w: %w", inv.dir, ErrCannotSeal, p) }
	d := &Document{ID: id, Key: o.Key.Public()}
	for _, s := range inv.sources {
		stream, err := r.write(ctx, s, temp, o.Sync)
		if err != nil {
			return nil, err
		}
		d.Streams = append(d.Streams, stream)
		d.Files = append(d.Files, s.files...)
	}
	r.finish()
	tree := d.rootTree()
	d.Root = tree.Hash
	var err error
	d.Checkpoint, err = sign(o.Key, id, tree)
	return d, err
}

// write makes the tiles of a stream.
func (r *reading) write(ctx context.Context, s *source, temp string, sync bool) (Stream, error) {
	w := &tileWriter{dir: temp, stream: s.path, sync: sync, open: map[string]*tileFile{}}
	g := newGather(s, w.write)
	err := r.stream(ctx, s, g.leaf)
	stream, errFinish := g.finish()
	return stream, errors.Join(err, errFinish, w.close())
}

// place brings a seal from temp to where it belongs, seal.json last, and then the recording.json that it seals. An old one goes first.
func place(dir, temp string, d *Document, o *Options) error {
	if err := prepare(temp, d, o); err != nil {
		return err
	}
	final, tiles := filepath.Join(dir, FileName), filepath.Join(dir, TilesName)
	if err := os.Remove(final); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(tiles); err != nil {
		return err
	}
	err := os.Rename(filepath.Join(temp, TilesName), tiles)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // there are no leaves
	} else if err == nil && o.Sync {
		err = errors.Join(syncTree(tiles), durable.SyncDir(dir))
	}
	if err != nil {
		return err
	}
	names := []string{FileName}
	if o.Manifest != nil {
		names = append(names, manifest)
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(temp, name), filepath.Join(dir, name)); err != nil {
			return err
		}
		if !o.Sync {
			continue
		}
		if err := durable.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// prepare writes what is put in place last.
func prepare(temp string, d *Document, o *Options) error {
	opts := &durable.Options{Sync: o.Sync, Mode: 0o644}
	if o.Manifest != nil {
		if err := durable.WriteFile(filepath.Join(temp, manifest), o.Manifest, opts); err != nil {
			return err
		}
	}
	return durable.WriteFile(filepath.Join(temp, FileName), d.Encode(), opts)
}

// syncTree brings the names of all directories in path to the disk.
func syncTree(path string) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return durable.SyncDir(p)
	})
}
