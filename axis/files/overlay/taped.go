package overlay

import (
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Taped is what a tape says of a tree of files: what its run was answered, path by path, in the order of the tape. It serves one
// FS, and holds the records that it was given.
type Taped struct {
	store cas.Store
	files string // TapedOptions.Files

	mu    sync.Mutex // guards what follows
	paths map[string]*heard
	reads []*heardAs // InOrder: contents that were read of files that the run had not changed, in recorded order
}

// TapedOptions say how a Taped answers. Nil and zero work.
type TapedOptions struct {
	// InOrder answers a read of a path that the tape does not know by the next content in recorded order that nobody has read: how
	// a tape of another producer is replayed, whose paths are compared afterwards.
	InOrder bool
	// Files is a directory with the files that the run read, under their paths: contents of which the tape has the hash alone come from
	// there. "" is none. It is only read, and what has another hash is refused.
	Files string
}

// A heard is what a tape says of one path.
type heard struct {
	answers []*heardAs
	next    int // of answers, the first that was not given yet
	first   int // how many of answers stand before the run changed the path itself
	// change is the first that the run made of the path: it says what stood there before.
	change   *tape.Record
	changeAt int  // among the records
	dir      bool // something lies below it
}

// A heardAs is an answer and its place among the records.
type heardAs struct {
	rec   *tape.Record
	at    int
	given bool // to who asked for the path
	lent  bool // to who asked for another path
}

// An UnknownError is a question to which a tape has no answer: its run never asked for the path.
type UnknownError struct {
	Op      string // what was asked for: "read", "look", "list", "removal"
	Path    string
	Nearest string // the path that the tape knows and that is most alike; "" where it knows none
	Why     string // what the tape lacks, where it knows the path
	Err     error  // of the blob that it names and that cannot be had; nil for others
}

// Unwrap returns Err.
func (e *UnknownError) Unwrap() error { return e.Err }

func (e *UnknownError) Error() string {
	switch {
	case e.Why != "":
		return e.Why
	case e.Nearest == "":
		return fmt.Sprintf("the tape has no %s of %s, and of no other path", e.Op, e.Path)
	}
	return fmt.Sprintf("the tape has no %s of %s; the nearest path that it knows is %s", e.Op, e.Path, e.Nearest)
}

// NewTaped returns what the records of a tape, in its order, say of files. Contents that do not stand in the records themselves are
// in store, which may be nil. Records of other kinds are passed over.
func NewTaped(records []*tape.Record, store cas.Store, o *TapedOptions) *Taped {
	t := &Taped{store: store, paths: make(map[string]*heard)}
	for i, rec := range records {
		t.hear(rec, i)
	}
	for _, h := range t.paths {
		if h.change == nil {
			h.first = len(h.answers)
		}
	}
	if o == nil {
		return t
	}
	t.files = o.Files
	if !o.InOrder {
		return t
	}
	for _, h := range t.paths {
		for _, x := range h.answers[:h.first] {
			if k, ok := x.rec.Kind.(*tape.FileRead); ok && k.Mode != linkMode {
				t.reads = append(t.reads, x)
			}
		}
	}
	slices.SortFunc(t.reads, func(a, b *heardAs) int { return a.at - b.at })
	return t
}

// another is the content that answers a read of a path of which the tape has nothing to say: the next that nobody has read. It is
// called under mu; nil where all were.
func (t *Taped) another(name string) *tape.Record {
	for len(t.reads) > 0 && (t.reads[0].given || t.reads[0].lent) {
		t.reads = t.reads[1:]
	}
	if len(t.reads) == 0 {
		return nil
	}
	x := t.reads[0]
	x.lent = true
	h := t.of(name, true)
	h.answers, h.first, h.next = []*heardAs{{rec: x.rec, at: x.at, given: true}}, 1, 1
	return x.rec
}

func (t *Taped) hear(rec *tape.Record, at int) {
	if f := tape.ChangedFile(rec.Kind); f != nil && f.IsPlace() {
		return
	}
	switch k := rec.Kind.(type) {
	case *tape.FileRead:
		t.of(k.Path, true).answer(rec, at)
	case *tape.FileStat:
		t.of(k.Path, k.Type != isNone).answer(rec, at)
	case *tape.DirList:
		t.of(k.Path, true).answer(rec, at)
	case *tape.FileWrite:
		t.of(k.Path, k.Before != nil).changed(rec, at)
	case *tape.FileDelete:
		t.of(k.Path, true).changed(rec, at)
	}
}

// of returns what is heard of a path; there says that something stood there, so that the directories above are known.
func (t *Taped) of(name string, there bool) *heard {
	h := t.paths[name]
	if h == nil {
		h = &heard{}
		t.paths[name] = h
	}
	for dir := path.Dir(name); there && dir != name && dir != "/"; dir = path.Dir(dir) {
		up := t.of(dir, false)
		if up.dir || dir == "." {
			break
		}
		up.dir = true
	}
	return h
}

func (h *heard) answer(rec *tape.Record, at int) {
	h.answers = append(h.answers, &heardAs{rec: rec, at: at})
}

func (h *heard) changed(rec *tape.Record, at int) {
	if h.change == nil {
		h.change, h.changeAt, h.first = rec, at, len(h.answers)
	}
}

// look implements lower.
func (t *Taped) look(name string, a ask) (look, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.paths[name]
	if h == nil {
		h = &heard{}
	}
	switch a {
	case askWalk:
		return h.onTheWay(), nil
	case askChange, askMake, askRemove:
		return t.stood(h, name, a)
	}
	rec := h.take(a)
	if rec == nil {
		l, err := t.implied(h, name, a)
		if err == nil || a != askRead && a != askOpen {
			return l, err
		}
		if rec = t.another(name); rec == nil {
			return l, err
		}
		h = t.paths[name]
	}
	return h.lookOf(rec), nil
}

func (t *Taped) close() error { return nil }

// onTheWay is what stands at a path below which somebody goes on: a directory, where the tape does not say that it is none.
func (h *heard) onTheWay() look {
	switch {
	case h.first > 0:
		return h.lookOf(h.answers[min(h.next, h.first-1)].rec)
	case h.change != nil:
		return h.lookOf(h.change)
	}
	return dirLook
}

// stood is what stands at a path that is to be changed. The tape may say nothing of one that is written.
func (t *Taped) stood(h *heard, name string, a ask) (look, error) {
	if h.change != nil {
		if l := h.lookOf(h.change); l.mode != 0 { // the very thing that the change found
			return l, nil
		}
	}
	if h.next < h.first || h.change == nil && len(h.answers) > 0 {
		i := min(h.next, len(h.answers)-1)
		if a == askMake {
			h.next = i + 1
		}
		return h.lookOf(h.answers[i].rec), nil
	}
	if h.change != nil {
		return h.lookOf(h.change), nil
	}
	l, err := t.implied(h, name, a)
	if err != nil && a != askRemove {
		return look{}, nil
	}
	return l, err
}

// take returns the next answer to a question: of those that were not given yet the first that is one, else the last that was given.
// Where there is none, what stood there before the run's first change of the path is one; answers from behind that are of what the
// run made itself, and only where a process made it are they all there is.
func (h *heard) take(a ask) *tape.Record {
	is := func(x *heardAs) bool { return answers(x.rec.Kind, a) }
	left := h.answers[min(h.next, h.first):h.first]
	if i := slices.IndexFunc(left, func(x *heardAs) bool { return is(x) && !x.lent }); i >= 0 {
		left[i].given = true
		if a != askOpen || !there(left[i].rec.Kind) {
			h.next += i + 1
		}
		return left[i].rec
	}
	for _, x := range slices.Backward(h.answers[:h.first]) {
		if is(x) {
			return x.rec
		}
	}
	switch {
	case h.change == nil:
		return nil
	case h.lookOf(h.change).mode != 0:
		return h.change
	}
	if w, ok := h.change.Kind.(*tape.FileWrite); !ok || w.SpawnID == 0 { // the run's own
		return h.change
	}
	if i := slices.IndexFunc(h.answers[h.first:], is); i >= 0 {
		return h.answers[h.first+i].rec
	}
	return nil
}

// there reports whether an answer is of something that can be opened: who does may ask again.
func there(k tape.Kind) bool {
	s, ok := k.(*tape.FileStat)
	return !ok || s.Type == isFile || s.Type == isDir
}

// answers reports whether a record is an answer to a question, if only that what was asked for is not there.
func answers(k tape.Kind, a ask) bool {
	s, ok := k.(*tape.FileStat)
	return !ok || a == askStat || a == askOpen || s.Type != isFile && a == askRead || s.Type != isDir && a == askList
}

// lookOf is what a record says of its path. Of a change it is what stood there before.
func (h *heard) lookOf(rec *tape.Record) look {
	l := look{from: rec}
	switch k := rec.Kind.(type) {
	case *tape.FileRead:
		l.mode, l.size = files.Regular|0o644, k.LenBytes
		if k.Mode == linkMode {
			l.mode, l.size, l.target = files.Link|0o777, 0, textOf(k.Content)
		}
	case *tape.FileStat:
		if l.ofStat(k); l.mode.IsLink() {
			l.target = h.target()
		}
	case *tape.DirList:
		l.mode = files.Dir | 0o755
	case *tape.FileWrite:
		if k.Before != nil {
			l.ofFile(&k.File)
		}
	case *tape.FileDelete:
		l.ofFile(&k.File)
	}
	if l.mode.IsRegular() && l.mode&0o100 == 0 && h.executable() {
		l.mode |= 0o111
	}
	return l
}

// linkMode is the mode of a symbolic link on a tape.
const linkMode = "120000"

// executable reports whether the tape says anywhere that the file may be executed, as the run found it.
func (h *heard) executable() bool {
	for _, x := range h.answers[:h.first] {
		if s, ok := x.rec.Kind.(*tape.FileStat); ok && s.Mode == "100755" {
			return true
		}
	}
	return false
}

// target is where the link at the path led, as the run found it; "" where the tape does not say.
func (h *heard) target() string {
	for _, x := range h.answers[:h.first] {
		if k, ok := x.rec.Kind.(*tape.FileRead); ok && k.Mode == linkMode {
			return textOf(k.Content)
		}
	}
	var l look
	if f := tape.ChangedFile(kindOf(h.change)); f != nil {
		l.ofFile(f)
	}
	return l.target
}

func kindOf(rec *tape.Record) tape.Kind {
	if rec == nil {
		return nil
	}
	return rec.Kind
}

func (l *look) ofStat(k *tape.FileStat) {
	switch k.Type {
	case isFile:
		l.mode, l.size = files.Regular|0o644, k.LenBytes
	case isDir:
		l.mode = files.Dir | 0o755
	case isLink:
		l.mode = files.Link | 0o777
	case isNone:
	default:
		l.barred = errWasRefused
	}
}

// ofFile is what stood at a path before a change of it.
func (l *look) ofFile(f *tape.File) {
	l.mode = files.Regular | 0o644
	switch f.Mode {
	case linkMode:
		l.mode, l.target = files.Link|0o777, textOf(f.Before)
	case "100755":
		l.mode = files.Regular | 0o755
	}
	if f.Before != nil {
		l.size = f.Before.Len
	}
}

func textOf(p *tape.Payload) string {
	if p == nil {
		return ""
	}
	return p.Text
}
