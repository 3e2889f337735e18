package seal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// filesPath is the path of the stream of files.
const filesPath = "."

// The names that say what a file's leaves are; see the comment of the package.
const (
	tapeSuffix  = ".tape"
	jsonlSuffix = ".jsonl"
	rawSuffix   = ".raw"
	storeSuffix = ".cas"
)

// A blob is one entry of a stream of blobs.
type blob struct {
	digest cas.Digest
	size   int64
}

func (b *blob) leaf() []byte {
	out, _ := b.digest.AppendText(make([]byte, 0, 2*cas.Size+22))
	return append(appendInt(append(out, ' '), b.size), '\n')
}

// A source is what a stream is made of.
type source struct {
	path  string
	kind  Kind
	size  int64
	blobs []blob // by digest
	files []File // by path; the digests come later
}

// An inventory is everything that lies in a recording's directory and is not outside the seal.
type inventory struct {
	dir     string
	sources []*source // by path
	odd     []Problem // what is neither file nor directory, names that are no UTF-8, what a killed Seal left
	tiles   []string  // the files in seal.tiles, by path
	total   int64     // bytes

	manifest []byte // what is taken for recording.json; nil for what lies there
}

// take looks at every name in dir.
func take(ctx context.Context, dir string) (*inventory, error) {
	inv := &inventory{dir: dir}
	w := &walker{inv: inv, files: map[string]int64{}}
	if err := w.walk(ctx, ""); err != nil {
		return nil, err
	}
	return inv, w.sort(ctx)
}

// A walker collects the files before it is known what each is.
type walker struct {
	inv   *inventory
	files map[string]int64 // path → size, of all but blobs
}

// listAtOnce is how many names of a directory are held at once.
const listAtOnce = 4096

func (w *walker) walk(ctx context.Context, rel string) error {
	open := openNoFollow
	if rel == "" {
		open = os.Open // the recording itself may be named by a link
	}
	f, err := open(w.inv.at(rel))
	if err != nil {
		return err
	}
	defer f.Close()
	var store *source
	if strings.HasSuffix(rel, storeSuffix) && !strings.HasPrefix(rel, TilesName+"/") {
		store = &source{path: rel, kind: Blobs}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := f.ReadDir(listAtOnce)
		for _, e := range entries {
			if err := w.entry(ctx, path.Join(rel, e.Name()), e, store); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if store != nil && len(store.blobs) > 0 {
		slices.SortFunc(store.blobs, func(a, b blob) int { return strings.Compare(string(a.digest[:]), string(b.digest[:])) })
		w.inv.sources = append(w.inv.sources, store)
	}
	return nil
}

// outside reports whether a path at the top is not part of what is sealed.
func outside(rel string) bool { return rel == FileName || rel == Annotations || rel == Seed }

func (w *walker) entry(ctx context.Context, rel string, e fs.DirEntry, store *source) error {
	switch {
	case !utf8.ValidString(e.Name()):
		w.inv.odd = append(w.inv.odd, *problem(CodeName, rel, "its name %q is not UTF-8, which a seal cannot hold", e.Name()))
		return nil
	case e.IsDir() && rel == TilesName:
		return w.tiles(ctx)
	case e.IsDir() && strings.HasPrefix(rel, TempPrefix):
		if left, err := os.ReadDir(w.inv.at(rel)); err != nil || len(left) == 0 {
			return err // of a sealing that was killed when all was done
		}
		w.inv.odd = append(w.inv.odd, *problem(CodeUnlisted, rel, "a sealing that runs or was killed left it: seal again, or remove it"))
		return nil
	case e.IsDir() && !outside(rel):
		return w.walk(ctx, rel)
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone since the directory was read
	}
	if err != nil {
		return err
	}
	if rel == TilesName {
		w.inv.odd = append(w.inv.odd, *problem(CodeNotRegular, rel, "expected a directory"))
		return nil
	}
	if !info.Mode().IsRegular() {
		w.inv.odd = append(w.inv.odd, *problem(CodeNotRegular, rel, "it is %s, expected a regular file", regular.Kind(info.Mode())))
		return nil
	}
	if outside(rel) {
		return nil
	}
	w.inv.total += info.Size()
	if d, err := cas.Parse(e.Name()); err == nil && store != nil {
		store.blobs = append(store.blobs, blob{d, info.Size()})
		store.size += info.Size()
		return nil
	}
	w.files[rel] = info.Size()
	return nil
}

// tiles lists seal.tiles.
func (w *walker) tiles(ctx context.Context) error {
	return filepath.WalkDir(w.inv.at(TilesName), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(w.inv.dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !d.Type().IsRegular() {
			w.inv.odd = append(w.inv.odd, *problem(CodeNotRegular, rel, "it is %s, expected a regular file", regular.Kind(d.Type())))
			return nil
		}
		w.inv.tiles = append(w.inv.tiles, rel)
		return nil
	})
}

// sort gives each file its stream.
func (w *walker) sort(ctx context.Context) error {
	rest := &source{path: filesPath, kind: Files}
	for rel, size := range w.files {
		kind, err := w.kind(ctx, rel, size)
		if err != nil {
			return err
		}
		if kind == Files {
			rest.files = append(rest.files, File{Path: rel, Size: size})
			rest.size += size
			continue
		}
		w.inv.sources = append(w.inv.sources, &source{path: rel, kind: kind, size: size})
	}
	if len(rest.files) > 0 {
		slices.SortFunc(rest.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		w.inv.sources = append(w.inv.sources, rest)
	}
	slices.SortFunc(w.inv.sources, func(a, b *source) int { return strings.Compare(a.path, b.path) })
	slices.Sort(w.inv.tiles)
	return nil
}

func (w *walker) kind(ctx context.Context, rel string, size int64) (Kind, error) {
	switch {
	case strings.HasSuffix(rel, tapeSuffix), strings.HasSuffix(rel, jsonlSuffix):
		return Lines, nil
	case strings.HasSuffix(rel, rawSuffix):
		index := strings.TrimSuffix(rel, rawSuffix) + jsonlSuffix
		if _, ok := w.files[index]; !ok {
			return Files, nil
		}
		end := int64(0)
		ok, err := cuts(ctx, w.inv.at(index), func(n int64) error { end += n; return nil })
		if err != nil || !ok || end != size {
			return Files, err
		}
		return Chunks, nil
	}
	return Files, nil
}

// at is the path of a file of the recording.
func (inv *inventory) at(rel string) string { return filepath.Join(inv.dir, filepath.FromSlash(rel)) }

// source returns the stream of a path, nil where there is none.
func (inv *inventory) source(path string) *source {
	for _, s := range inv.sources {
		if s.path == path {
			return s
		}
	}
	return nil
}

// cutOf reads "offset" and "length" of a line, which must each stand there once and not be negative.
func cutOf(s *jsonscan.Scanner, line []byte) (offset, length int64, ok bool) {
	offset, length = -1, -1
	s.Reset(line)
	for s.Begin('{'); s.More('}'); {
		switch key := string(s.Key()); {
		case key == "offset" && offset < 0:
			offset = int64(min(s.Uint(), 1<<62))
		case key == "length" && length < 0:
			length = int64(min(s.Uint(), 1<<62))
		case key == "offset" || key == "length":
			return 0, 0, false
		default:
			s.Skip()
		}
	}
	return offset, length, s.End() == nil && offset >= 0 && length >= 0
}

// maxIndexLine is how long a line may be, in bytes, that cuts chunks.
const maxIndexLine = 1 << 20

// cuts gives the length of each chunk that an index names. It is no such index where ok is false: then some lengths may have
// been given.
func cuts(ctx context.Context, index string, chunk func(n int64) error) (ok bool, err error) {
	f, err := openNoFollow(index)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxIndexLine)
	at := int64(0)
	var s jsonscan.Scanner
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		offset, length, ok := cutOf(&s, lines.Bytes())
		if !ok || offset != at || length > 1<<53-at {
			return false, ctx.Err()
		}
		at += length
		if err := chunk(length); err != nil {
			return false, err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return false, nil
	}
	return lines.Err() == nil, lines.Err()
}

// open opens a file of the recording that must be one.
func (inv *inventory) open(rel string) (*os.File, error) {
	f, err := openNoFollow(inv.at(rel))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = problem(CodeNotRegular, rel, "it is %s, expected a regular file", regular.Kind(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
