package library

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// PackOptions say how Pack works. Nil and zero work.
type PackOptions struct {
	Seed      bool                    // give the seed of the run's random numbers along, which makes them known: that of this recording, not the project's key
	ConfigDir string                  // where that key lies; the user's when empty
	Progress  func(done, total int64) // bytes of the recording
}

// A Packing is what Pack made.
type Packing struct {
	Recording string     `json:"recording"` // its directory
	ID        string     `json:"id"`
	State     string     `json:"state"`
	File      string     `json:"file"`
	Digest    string     `json:"digest"` // BLAKE3 of the file
	Table     cas.Digest `json:"-"`      // of its table, by which a packed.View is checked; zero for none
	Size      int64      `json:"size"`   // of the file, in bytes
	Files     int64      `json:"files"`
	Bytes     int64      `json:"bytes"` // of all files together
	Seed      bool       `json:"seed"`  // whoever has the file can make the run's random numbers
	LeftOut   []LeftOut  `json:"left_out"`
}

// A LeftOut is something in a recording's directory that is not packed.
type LeftOut struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Pack makes of rec the file, whose form package packed defines. The same recording gives the same bytes. Each blob is
// checked while it is packed; one that nothing names is left out. The file is there whole or not at all, and replaces
// none. An unfinished recording is packed as it stands.
//
// Errors wrap ErrLive for a recording that is being made, fs.ErrExist for a file that is there; a *cas.MissingError or
// *cas.CorruptError is a blob that does not hold.
func Pack(ctx context.Context, rec *recording.Recording, file string, o *PackOptions) (*Packing, error) {
	if o == nil {
		o = new(PackOptions)
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil { // else there is no such directory to write to
		file = filepath.Join(dir, filepath.Base(file))
	}
	switch {
	case rec.Live() == recording.LiveYes:
		return nil, fmt.Errorf("%s %w: pack it once its program has ended", rec.Dir, recording.ErrLive)
	case recording.Within(file, rec.Dir):
		return nil, fmt.Errorf("%s lies in the recording that it is to hold: name a file elsewhere", file)
	case recording.Exists(file):
		return nil, fmt.Errorf("%s: %w: name another file, or remove it first", file, fs.ErrExist)
	}
	p := &packer{ctx: ctx, rec: rec, o: o, out: &Packing{
		Recording: rec.Dir, ID: rec.Manifest.ID, State: rec.Manifest.State, File: file, Seed: o.Seed, LeftOut: []LeftOut{},
	}}
	if err := p.list(); err != nil {
		return nil, err
	}
	return p.out, p.write()
}

// packer is one Pack under way.
type packer struct {
	ctx context.Context
	rec *recording.Recording
	o   *PackOptions
	out *Packing

	seed    string // what stands in its file; "" for none
	store   *cas.Dir
	unnamed map[cas.Digest]struct{} // blobs that are left out
	files   []packFile              // in order
	done    int64
}

// A packFile is one entry to be.
type packFile struct {
	name string // with slashes
	size int64
}

// list settles what is packed, before anything is written.
func (p *packer) list() (err error) {
	if p.store, err = p.rec.Store(); err != nil {
		return err
	}
	if err := p.whole(); err != nil {
		return err
	}
	if !p.rec.Manifest.Sealed { // a seal may stand for blobs that no text names
		var unread *unreadError // then every blob may be needed, and none is left out
		if p.unnamed, err = Unnamed(p.rec.Dir, p.store); err != nil && !errors.As(err, &unread) {
			return err
		}
	}
	if err := filepath.WalkDir(p.rec.Dir, p.visit); err != nil {
		return err
	}
	if p.o.Seed {
		if err := p.addSeed(); err != nil {
			return err
		}
	}
	slices.SortFunc(p.files, func(a, b packFile) int { return cmp.Compare(a.name, b.name) })
	p.out.Files = int64(len(p.files))
	return p.complete()
}

// addSeed lists the seed, which lies in the recording's directory seldom.
func (p *packer) addSeed() error {
	key, err := scrub.ReadKey(recording.KeyPath(p.o.ConfigDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	seed, err := p.rec.Seed(key)
	if err != nil {
		return err
	}
	text, _ := seed.MarshalText() // never fails
	p.seed = string(text)
	p.files = append(p.files, packFile{recording.SeedName, int64(len(text))})
	p.out.Bytes += int64(len(text))
	return nil
}

// complete refuses to pack what no Unpack would take for the recording that it is.
func (p *packer) complete() error {
	need := []string{recording.ManifestName}
	if p.rec.Finished() {
		need = append(need, recording.TapeName)
	}
	for _, name := range need {
		if !slices.ContainsFunc(p.files, func(f packFile) bool { return f.name == name }) {
			return fmt.Errorf("%s: %s is not among the files that can be packed", p.rec.Dir, name)
		}
	}
	return nil
}

// whole refuses a recording that names blobs which it does not hold.
func (p *packer) whole() error {
	missing, err := p.rec.MissingBlobs(p.store)
	if errors.Is(err, fs.ErrNotExist) && !p.rec.Finished() {
		return nil // killed before the tape began
	}
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%s does not hold: %s", p.rec.Dir, missing[0])
	}
	if err != nil {
		return fmt.Errorf("%w; `tapedeck verify` lists everything that is wrong with it", err)
	}
	return nil
}

func (p *packer) visit(path string, e fs.DirEntry, err error) error {
	if err != nil || path == p.rec.Dir {
		return err
	}
	if err := p.ctx.Err(); err != nil {
		return err
	}
	rel, err := filepath.Rel(p.rec.Dir, path)
	if err != nil {
		return err
	}
	name := filepath.ToSlash(rel)
	switch {
	case strings.HasPrefix(e.Name(), durable.TempPrefix):
		if e.IsDir() { // of a writer that was killed: no part of the recording
			return fs.SkipDir
		}
		return nil
	case e.IsDir():
		return nil
	case name == recording.SeedName:
		if !p.o.Seed {
			p.leaveOut(name, "it makes the run's random numbers known: --with-seed packs it")
		}
		return nil
	case !e.Type().IsRegular() && indispensable(name):
		return fmt.Errorf("%s is no regular file: put what it leads to in its place, as `cp -rL` does", path)
	case !e.Type().IsRegular():
		p.leaveOut(name, "no regular file")
		return nil
	}
	if err := packed.CheckName(name); err != nil {
		p.leaveOut(name, "its name is none of a recording's")
		return nil
	}
	if _, out := p.unnamed[blobOf(name)]; out {
		p.leaveOut(name, "nothing names this blob")
		return nil
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	p.files = append(p.files, packFile{name, info.Size()})
	p.out.Bytes += info.Size()
	return nil
}

// indispensable reports whether a recording without the entry name is another: what else is a link is left out.
func indispensable(name string) bool {
	return name == recording.ManifestName || name == recording.TapeName || name == recording.TapeName+tape.StoreSuffix || !blobOf(name).IsZero()
}

func (p *packer) leaveOut(name, why string) {
	p.out.LeftOut = append(p.out.LeftOut, LeftOut{name, why})
}

// packPrefix begins the name of the directory in which a recording is packed. Who packs holds its lock.
const packPrefix = durable.TempPrefix + "pack-"

// write makes the file, in a directory beside it until it is whole. Its name may have been taken meanwhile.
func (p *packer) write() error {
	temp, err := recording.NewTemp(filepath.Dir(p.out.File), packPrefix)
	if err != nil {
		return err
	}
	defer temp.Remove()
	f, err := os.OpenFile(filepath.Join(temp.Dir, "packed"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(p.writeTo(f), f.Close()); err != nil {
		return err
	}
	return renameNew(f.Name(), p.out.File)
}

func (p *packer) writeTo(f *os.File) error {
	hash := cas.NewHasher()
	buf := bufio.NewWriterSize(io.MultiWriter(f, hash), 256<<10)
	if err := p.pack(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.out.Digest, p.out.Size = hash.Sum().String(), info.Size()
	return nil
}

func (p *packer) pack(w io.Writer) error {
	pw, err := packed.NewWriter(w, &packed.Index{ID: p.out.ID, State: p.out.State, Files: p.out.Files, Bytes: p.out.Bytes})
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(p.rec.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range p.files {
		if err := p.add(pw, root, f); err != nil {
			return err
		}
	}
	err = pw.Close()
	p.out.Table = pw.Table()
	return err
}

func (p *packer) add(w *packed.Writer, root *os.Root, f packFile) error {
	r, err := p.open(root, f.name)
	if err != nil {
		return err
	}
	defer r.Close()
	return w.Add(f.name, f.size, &Meter{Context: p.ctx, From: r, Count: func(n int) {
		p.done += int64(n)
		if p.o.Progress != nil {
			p.o.Progress(p.done, p.out.Bytes)
		}
	}})
}

// open opens a file of the recording; a blob through the store, whose reader checks it.
func (p *packer) open(root *os.Root, name string) (io.ReadCloser, error) {
	if d := blobOf(name); !d.IsZero() {
		return p.store.Open(d)
	}
	if name == recording.SeedName {
		return io.NopCloser(strings.NewReader(p.seed)), nil
	}
	return root.Open(filepath.FromSlash(name))
}

// blobOf returns the digest of a blob of the recording; zero for every other name.
func blobOf(name string) cas.Digest {
	if !strings.HasPrefix(name, recording.TapeName+tape.StoreSuffix+"/") {
		return cas.Digest{}
	}
	d, _ := packed.BlobOf(name) // no digest is the zero one
	return d
}

// A Meter counts what is read, and ends the reading with its context.
type Meter struct {
	Context context.Context
	From    io.Reader
	Count   func(n int)
}

// Read implements io.Reader.
func (m *Meter) Read(b []byte) (int, error) {
	if err := m.Context.Err(); err != nil {
		return 0, err
	}
	n, err := m.From.Read(b)
	m.Count(n)
	return n, err
}

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
	f, err := regular.Open(file)
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
	f, err := regular.Open(path)
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

func (l *Library) unpackTo(id, output string) (string, error) {
	if output == "" {
		if err := packed.CheckName(id + recordingExt); err != nil {
			return "", fmt.Errorf("the recording's id %q is no name for its directory: name one with -o", id)
		}
		output = filepath.Join(l.Dir, id+recordingExt)
	}
	path, err := filepath.Abs(output)
	if err == nil {
		err = ensureAround(path, false)
	}
	if err == nil && recording.Exists(path) {
		err = fmt.Errorf("%s: %w: nothing was unpacked", path, fs.ErrExist)
	}
	return path, err
}

// introduce makes the library know a recording that lies elsewhere, unless it knows one of that id.
func (l *Library) introduce(id, path string) error {
	name := filepath.Join(l.Dir, id)
	if recording.Exists(name+recordingExt) || recording.Exists(name+pointerExt) || packed.CheckName(id+pointerExt) != nil {
		return nil
	}
	return l.Point(id, path, false)
}
