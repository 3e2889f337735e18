package overlay

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxRead is the longest content, in bytes, that is read from TapedOptions.Files.
const maxRead = 1 << 30

// content of a file that was read: what the tape holds of it, else what stands at its path in the directory of those files.
func (t *Taped) contentOf(name string, k *tape.FileRead) ([]byte, error) {
	b, err := t.bytes(name, k.Content, k.ContentHash)
	if err == nil || t.files == "" {
		return b, err
	}
	if b, err = t.fromFiles(k); err != nil {
		return nil, &UnknownError{Op: "read", Path: name, Err: err, Why: fmt.Sprintf(
			"what stood in %s is not on the tape, and not to be had from %s: %v", name, t.files, err)}
	}
	return b, nil
}

// fromFiles reads the file of a record. Where its hash is a digest, it is that of the bytes.
func (t *Taped) fromFiles(k *tape.FileRead) ([]byte, error) {
	root, err := os.OpenRoot(t.files)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	path := strings.TrimLeft(k.Path, "/")
	st, err := root.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case st.Size() > maxRead:
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxRead)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil {
		return nil, err
	}
	if got := cas.Sum(b); got != k.ContentHash && !tape.HashOfOthers(k.Extra) {
		return nil, errors.Join(fmt.Errorf("%s is not what the run read", path), &cas.CorruptError{Digest: k.ContentHash, Got: got})
	}
	return b, nil
}

// read implements lower.
func (t *Taped) read(name string, l look) ([]byte, error) {
	if l.from == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		return nil, t.unknown("read", name)
	}
	if k, ok := l.from.Kind.(*tape.FileRead); ok {
		return t.contentOf(name, k)
	}
	if f := tape.ChangedFile(l.from.Kind); f != nil {
		return t.bytes(name, f.Before, cas.Digest{})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.paths[name]; h != nil { // looked at, and to be copied
		if h.change != nil && h.lookOf(h.change).mode != 0 {
			return t.bytes(name, tape.ChangedFile(h.change.Kind).Before, cas.Digest{})
		}
		for _, x := range h.answers[:h.first] { // any content of it will do
			if k, ok := x.rec.Kind.(*tape.FileRead); ok && k.Mode != linkMode {
				return t.contentOf(name, k)
			}
		}
	}
	return nil, &UnknownError{Op: "read", Path: name, Why: fmt.Sprintf("the tape says that %s is there, not what is in it", name)}
}

// bytes returns the bytes of a payload, or of the hash where there is none.
func (t *Taped) bytes(name string, p *tape.Payload, hash cas.Digest) ([]byte, error) {
	if p == nil && hash.IsZero() {
		return nil, &UnknownError{Op: "read", Path: name, Why: fmt.Sprintf("the tape does not hold what stood in %s", name)}
	}
	b, err := t.content(p, hash)
	if err != nil {
		return nil, &UnknownError{Op: "read", Path: name, Err: err, Why: fmt.Sprintf(
			"%v: it is what stood in %s; put it into the directory beside the tape whose name ends in .cas", err, name)}
	}
	return b, nil
}

// content is bytes with the error of the blob itself.
func (t *Taped) content(p *tape.Payload, hash cas.Digest) ([]byte, error) {
	switch {
	case p != nil && p.Inline:
		return p.Bytes(nil)
	case p != nil:
		hash = p.Hash
	}
	if t.store == nil {
		return nil, &cas.MissingError{Digest: hash}
	}
	return t.store.Get(hash)
}

// names returns what a list of a directory holds.
func (t *Taped) names(name string, k *tape.DirList) ([]entry, error) {
	b, err := t.content(k.Names, k.NamesDigest)
	if err != nil {
		return nil, &UnknownError{Op: "list", Path: name, Err: err, Why: fmt.Sprintf(
			"%v: it is the list of the names in %s, of which the tape has the digest alone", err, name)}
	}
	all, err := parseNames(b)
	if err != nil {
		return nil, &UnknownError{Op: "list", Path: name, Why: fmt.Sprintf("the names in %s stand on the tape as no JSON list of strings", name)}
	}
	return all, nil
}

// list implements lower.
func (t *Taped) list(name string, l look) ([]entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.paths[name]
	rec := l.from
	k, ok := kindOf(rec).(*tape.DirList)
	if !ok && h != nil { // it was found to be a directory for another reason
		rec = h.take(askList)
		k, ok = kindOf(rec).(*tape.DirList)
	}
	if !ok {
		return nil, t.unknown("list", name)
	}
	all, err := t.names(name, k)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(e entry) bool { return t.made(join(name, e.name), h.placeOf(rec)) }), nil
}

// placeOf is where an answer stands among the records.
func (h *heard) placeOf(rec *tape.Record) int {
	for _, x := range h.answers {
		if x.rec == rec {
			return x.at
		}
	}
	return 0
}

// made reports whether the run had made a path itself by then, so that it is no part of what the tree began as.
func (t *Taped) made(name string, by int) bool {
	h := t.paths[name]
	if h == nil || h.change == nil || h.changeAt > by {
		return false
	}
	k, ok := h.change.Kind.(*tape.FileWrite)
	return ok && k.Before == nil && k.SpawnID == 0
}

// implied is what the tape says of a path about which it has no record that answers: it lies above others, or the list of its
// directory has it, or has it not. It is called under mu.
func (t *Taped) implied(h *heard, name string, a ask) (look, error) {
	if h.dir || name == "." {
		return dirLook, nil
	}
	if in, known := t.listedIn(name); known {
		l := look{}
		switch {
		case in.IsDir():
			l.mode = files.Dir | 0o755
		case in.IsRegular():
			l.mode = files.Regular | 0o644
		case in.IsLink():
			l.mode = files.Link | 0o777
		}
		return l, nil
	}
	return look{}, t.unknown(words[a], name)
}

// words name questions in errors.
var words = map[ask]string{askRead: "read", askOpen: "read", askStat: "look", askList: "list", askRemove: "removal"}

// listedIn returns the type of a name in the list of its directory, 0 where that lacks it; known is false where no list is known.
func (t *Taped) listedIn(name string) (mode files.Mode, known bool) {
	up := t.paths[path.Dir(name)]
	if up == nil {
		return 0, false
	}
	for _, x := range up.answers[:up.first] {
		k, ok := x.rec.Kind.(*tape.DirList)
		if !ok {
			continue
		}
		all, err := t.names(path.Dir(name), k)
		if err != nil {
			continue
		}
		i := slices.IndexFunc(all, func(e entry) bool { return e.name == path.Base(name) })
		if i >= 0 {
			return all[i].mode, true
		}
		known = true
	}
	return 0, known
}

// unknown is called under mu.
func (t *Taped) unknown(op, name string) error {
	return &UnknownError{Op: op, Path: name, Nearest: nearest(name, slices.Sorted(maps.Keys(t.paths)))}
}

// nearest returns the path that is most like name: most bytes in common at both ends, the first of equals; "" where none has any.
func nearest(name string, all []string) (best string) {
	most := 0
	for _, p := range all {
		if n := alike(name, p); p != name && n > most {
			best, most = p, n
		}
	}
	return best
}

// alike counts the bytes that two paths have in common at both ends.
func alike(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	a, b = a[n:], b[n:]
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
		n++
	}
	return n
}
