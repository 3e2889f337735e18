package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// UnpackOptions say where a packed recording goes and what it may declare. Nil and zero work.
type UnpackOptions struct {
	Output   string // directory of the recording, which must not exist; in the library, under its id, when empty
	Limits   packed.Limits
	Progress func(done, total int64) // bytes of the recording
}

// unpackPrefix begins the name of the directory in which a recording is unpacked. Who unpacks holds its lock.
const unpackPrefix = durable.TempPrefix + "unpack-"

// Unpack makes a recording of the packed file. The recording is there whole or not at all: it is unpacked into a
// directory beside its place and renamed once everything in it has been checked, and nothing that is there is replaced.
// Whatever a file says, nothing is written outside that directory, nor more than it declares.
//
// Errors: those of package packed; fs.ErrExist where the place is taken; ErrNotRecording where the file holds none.
func (l *Library) Unpack(ctx context.Context, file string, o *UnpackOptions) (*recording.Recording, error) {
	if o == nil {
		o = new(UnpackOptions)
	}
	f, err := recording.OpenRegular(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r, err := packed.NewReader(f, info.Size(), &o.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer r.Close()
	u := &unpacker{ctx: ctx, r: r, index: r.Index(), progress: o.Progress}
	if u.final, err = l.unpackTo(u.index.ID, o.Output); err != nil {
		return nil, err
	}
	if err := u.unpack(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := l.introduce(u.index.ID, u.final); err != nil {
		return nil, err
	}
	return recording.Open(u.final)
}

// unpacker is one Unpack under way.
type unpacker struct {
	ctx      context.Context
	r        *packed.Reader
	index    packed.Index
	progress func(done, total int64)
	final    string

	dir  string // unpacked into
	root *os.Root
	done int64
}

// unpack makes the directory, fills it, looks at it and gives it its name.
func (u *unpacker) unpack() error {
	temp, err := recording.NewTemp(filepath.Dir(u.final), unpackPrefix)
	if err != nil {
		return err
	}
	defer temp.Remove()
	u.dir = temp.Dir
	if err := u.fill(); err != nil {
		return err
	}
	if err := u.check(); err != nil {
		return err
	}
	if err := renameNew(u.dir, u.final); err != nil {
		return fmt.Errorf("%s: %w: nothing was unpacked", u.final, err)
	}
	return nil
}

// fill writes every entry.
func (u *unpacker) fill() (err error) {
	if u.root, err = os.OpenRoot(u.dir); err != nil {
		return err
	}
	defer u.root.Close()
	made := map[string]bool{".": true}
	for {
		f, err := u.r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(f.Name)
		if !filepath.IsLocal(name) { // a device's name, on Windows
			return fmt.Errorf("%w: %q", packed.ErrName, f.Name)
		}
		if parent := filepath.Dir(name); !made[parent] {
			if err := u.root.MkdirAll(parent, 0o700); err != nil {
				return err
			}
			made[parent] = true
		}
		if err := u.file(name); err != nil {
			return err
		}
	}
}

// manifestTemp is the name of recording.json until everything else is there: what lacks it is no recording.
const manifestTemp = durable.TempPrefix + recording.ManifestName

func (u *unpacker) file(name string) error {
	if name == recording.ManifestName {
		name = manifestTemp
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, &Meter{Context: u.ctx, From: u.r, Count: func(n int) {
		u.done += int64(n)
		if u.progress != nil {
			u.progress(u.done, u.index.Bytes)
		}
	}})
	return errors.Join(err, f.Close())
}

// check looks at what was unpacked: it must be the recording that the index speaks of.
func (u *unpacker) check() error {
	err := os.Rename(filepath.Join(u.dir, manifestTemp), filepath.Join(u.dir, recording.ManifestName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m, err := recording.ReadManifest(u.dir)
	if errors.Is(err, recording.ErrNotRecording) {
		return fmt.Errorf("%w: no %s is packed in it", recording.ErrNotRecording, recording.ManifestName)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", packed.ErrDamaged, err)
	}
	if m.ID != u.index.ID || m.State != u.index.State {
		return fmt.Errorf("%w: its index speaks of another recording", packed.ErrDamaged)
	}
	return nil
}

// renameChecked is renameNew where the kernel does not check. A file is linked to its new name, which fails where that is
// taken. For a directory, and on file systems without hard links, there is a moment between the look and the rename: a
// directory that is made there meanwhile is replaced only while it is empty, a file by such a file system alone.
func renameChecked(from, to string) error {
	if info, err := os.Lstat(from); err == nil && info.Mode().IsRegular() {
		switch err := os.Link(from, to); {
		case err == nil:
			return os.Remove(from)
		case errors.Is(err, fs.ErrExist):
			return err
		}
	}
	if recording.Exists(to) {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// LooksPacked reports whether path is a file that begins as a packed recording does; a tape begins with a brace.
func LooksPacked(path string) bool {
	f, err := recording.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(packed.Magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == packed.Magic
}

// UnpackedName is the directory that UnpackTemp makes in one of its own.
const UnpackedName = "recording"

// UnpackTemp unpacks the packed file into a temporary directory, for who only looks at it; clean, which is not nil where err
// is, removes it. The errors are those of Unpack.
func UnpackTemp(ctx context.Context, file string, progress func(done, total int64)) (rec *recording.Recording, clean func(), err error) {
	temp, err := recording.NewTemp(os.TempDir(), OpenPrefix)
	if err != nil {
		return nil, nil, err
	}
	rec, err = Of(temp.Dir).Unpack(ctx, file, &UnpackOptions{Output: filepath.Join(temp.Dir, UnpackedName), Progress: progress})
	if err != nil {
		return nil, nil, errors.Join(err, temp.Remove())
	}
	return rec, func() { _ = temp.Remove() }, nil
}
