package deck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A session is the tape of one run while it is being written, with what everything that writes to it shares.
type session struct {
	*redactor
	dir   string
	roots recording.Roots
	log   *slog.Logger

	replay bool
	start  time.Time // when the tape began: its clock

	store *cas.Dir
	file  *tapeFile
	rec   *tape.Recorder
	tap   *exchange.Tap
	mcp   *mcp.Log      // of conversations with MCP servers
	http  *mcp.OverHTTP // those of them that are held over HTTP; nil where MCP is not followed

	failed context.Context // done once something could not be written; see fail
	cancel context.CancelCauseFunc
	// asked is told of each request before it is sent on or answered; an error refuses it. Set before the program starts.
	asked func(r *exchange.Request, k exchange.Key) error
	// answered is told of each exchange whose answer is about to begin (exchange.TapOptions.Answered); set likewise.
	answered func(opener, arrival, recorded uint64) (begins func(), held func(bool))

	closing      sync.Once
	stopFlushing context.CancelFunc
	flushing     sync.WaitGroup
	closeErr     error
}

// sessionOptions say what newSession opens.
type sessionOptions struct {
	redactor *redactor
	dir      string // exists
	script   string // the program's path
	args     []string
	roots    recording.Roots
	replay   bool
	live     bool // of a replay: some requests are sent on
	sync     bool
	log      *slog.Logger

	recorded *recordedConversations // of a replay: what it answers from; nil for none
}

// newSession starts a tape in o.dir. The session must be closed.
func newSession(o *sessionOptions) (*session, error) {
	s := &session{redactor: o.redactor, dir: o.dir, roots: o.roots, replay: o.replay, log: secrets.Logger(o.log, o.redactor.scrub)}
	s.failed, s.cancel = context.WithCancelCause(context.Background())
	s.asked = func(*exchange.Request, exchange.Key) error { return nil }
	s.answered = func(_, _, _ uint64) (begins func(), held func(bool)) { return func() {}, func(bool) {} }
	if err := s.openTape(o); err != nil {
		return nil, err
	}
	// A replay's answers are on a tape already: what is cut off loses nothing.
	tap := &exchange.TapOptions{Replay: o.replay, Closed: o.replay && !o.live, TrueLength: true}
	tap.Asked = func(r *exchange.Request, k exchange.Key) error { return s.asked(r, k) }
	tap.Answered = func(opener, arrival, recorded uint64) (begins func(), held func(bool)) {
		return s.answered(opener, arrival, recorded)
	}
	s.openConversations(o)
	if s.http != nil {
		tap.Conversations = s.http
	}
	if !o.replay || o.live {
		tap.PartDir = filepath.Join(o.dir, recording.PartName)
	}
	s.tap = exchange.NewTap(s.rec, s.class, s.scrub, tap)
	return s, nil
}

func (s *session) openTape(o *sessionOptions) (err error) {
	path := filepath.Join(o.dir, recording.TapeName)
	if s.store, err = cas.OpenDir(path+tape.StoreSuffix, &cas.DirOptions{Sync: o.sync}); err != nil {
		return err
	}
	script, _ := tape.SafeString(s.scrub.String(o.script))
	h := &tape.Header{Producer: recording.Producer, ScriptPath: &script, Argv: []string{}}
	for _, a := range o.args {
		text, _ := tape.SafeString(s.scrub.String(a))
		h.Argv = append(h.Argv, text)
	}
	file, w, err := createTape(path, h)
	if err != nil {
		return err
	}
	s.file, s.start = file, time.Now()
	ro := &tape.RecorderOptions{Store: s.store, Failed: s.fail}
	if o.sync {
		ro.Sync = s.file.Sync
	}
	s.rec = tape.NewRecorder(w, ro)
	ctx, stop := context.WithCancel(context.Background())
	s.stopFlushing = stop
	s.flushing.Go(func() {
		for tick := time.Tick(flushEvery); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				_ = s.rec.Flush() // the recorder tells fail
			}
		}
	})
	return nil
}

// flushEvery is how long a record is in the recorder's own memory at most: then who looks at the run sees it, and a kill does not take it.
const flushEvery = time.Second

// close ends the tape, once. The error is the first that the recorder met.
func (s *session) close() error {
	s.closing.Do(func() {
		s.stopFlushing()
		s.flushing.Wait()
		s.closeErr = errors.Join(s.rec.Flush(), s.file.Close())
	})
	return s.closeErr
}

// fail ends the run, for err kept something from being written that a replay would need: a run that cannot be recorded does not
// go on as if it were. Whoever writes to the recording calls it, and the first error counts: nothing more gets on the tape,
// every exchange is cut, and the program is killed with its world. It may be called at any time, by several goroutines.
func (s *session) fail(err error) {
	s.cancel(err)
	s.rec.Fail(err)
}

// failure is the error that fail was first called with; nil for none.
func (s *session) failure() error { return context.Cause(s.failed) }

// logOptions say how the session log beside the tape of s is written.
func (s *session) logOptions(sync bool, heard func(sessionlog.Event) error) *derive.WriteOptions {
	return &derive.WriteOptions{Hide: s.scrub.Bytes, Log: s.log, Sync: sync, Heard: heard}
}

// A tapeFile is a tape on its way to the disk. It gets its name with its header in it: a tape without one does not load, and
// a recorder may be killed in between.
type tapeFile struct{ *os.File }

// createTape begins the tape at path.
func createTape(path string, h *tape.Header) (*tapeFile, *tape.Writer, error) {
	begun := filepath.Join(filepath.Dir(path), durable.TempPrefix+filepath.Base(path))
	f, err := os.OpenFile(begun, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	t := &tapeFile{f}
	w, err := tape.NewWriter(t, h)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(begun, path)
	}
	if err == nil {
		t.File, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0) // its errors name it
	}
	return t, w, err
}

// A layeredStore adds to a store what the one below does not have: a replay keeps what is new in its own store, and reads the recording's. It
// lists what was added.
type layeredStore struct {
	cas.Store
	below cas.Store
}

func (s *layeredStore) Put(b []byte) (cas.Digest, error) {
	d := cas.Sum(b)
	if _, err := s.below.Size(d); err == nil { // whether its bytes hold is found out by whoever reads them
		return d, nil
	}
	return s.Store.Put(b)
}

func (s *layeredStore) Get(d cas.Digest) ([]byte, error) {
	b, err := s.Store.Get(d)
	if recording.IsMissing(err) {
		return s.below.Get(d)
	}
	return b, err
}

func (s *layeredStore) Open(d cas.Digest) (io.ReadCloser, error) {
	r, err := s.Store.Open(d)
	if recording.IsMissing(err) {
		return s.below.Open(d)
	}
	return r, err
}

func (s *layeredStore) Size(d cas.Digest) (int64, error) {
	n, err := s.Store.Size(d)
	if recording.IsMissing(err) {
		return s.below.Size(d)
	}
	return n, err
}

// A trees takes and compares the snapshots of one run.
type trees struct {
	s       *session
	root    string    // of the work tree, as the program knows it
	cache   string    // path of the stat cache; "" for none
	exclude []string  // recordings
	store   cas.Store // of what the run found
	made    cas.Store // of what it made of that, and of all that store has
	journal func() *files.Journal

	at     time.Time   // before is what stood there then
	before *files.Tree // nil where no snapshot was taken
	after  *files.Tree
}

// snap takes a snapshot through root: the work tree itself, or a way to it through the jail. o says what differs from one to
// the next.
func (t *trees) snap(root string, o files.SnapOptions) (*files.Tree, error) {
	o.Scrubber, o.ScrubID, o.RootName, o.Known = t.s.scrub, t.s.id, t.root, t.before
	o.Exclude, o.CachePath, o.CacheFailed, o.Times = t.exclude, t.cache, t.withoutCache, true
	return files.Snap(root, &o)
}

// withoutCache goes on without the stat cache, which saves time and decides nothing.
func (t *trees) withoutCache(err error) {
	t.cache = ""
	t.s.log.Warn("no stat cache: every file of the work tree is read again", "err", err)
}

// takeBefore keeps the work tree as the run finds it, and writes tree.json.
func (t *trees) takeBefore(progress func(files int, bytes int64, done bool), sync bool) (err error) {
	if t.root == "" {
		return nil
	}
	var step func(int, int64)
	if progress != nil {
		step = func(files int, bytes int64) { progress(files, bytes, false) }
		defer progress(0, 0, true)
	}
	t.at = time.Now()
	if t.before, err = t.snap(t.root, files.SnapOptions{Store: t.store, Progress: step}); err != nil {
		return err
	}
	return recording.WriteWith(filepath.Join(t.s.dir, recording.TreeName), t.before.Encode, sync)
}

// takeAfter looks at the work tree as the run left it.
func (t *trees) takeAfter(root string) (err error) {
	if t.before == nil {
		return nil
	}
	if t.after, err = t.snap(root, files.SnapOptions{Store: t.made, Journal: t.journal(), KeepCache: true}); err != nil {
		err = fmt.Errorf("work tree after the run: %w", err)
		t.s.fail(err)
		return err
	}
	return nil
}

// keep restores the tree that the run left into dir, "" for none, and says what is not there.
func (t *trees) keep(dir string) (notes []string, err error) {
	if dir == "" {
		return nil, nil
	}
	left, err := files.Restore(t.after, t.made, dir)
	for _, path := range left {
		notes = append(notes, path+" holds a secret and was not kept")
	}
	return notes, err
}

// adopt puts the tree that the run found, with its contents, beside the session's tape: a replay that is to stand by itself
// must not lean on the recording that it replayed.
func (t *trees) adopt() error {
	if t.before == nil {
		return nil
	}
	if err := t.adoptBlobs(t.before); err != nil {
		return err
	}
	return recording.WriteWith(filepath.Join(t.s.dir, recording.TreeName), t.before.Encode, false)
}

// adoptBlobs puts the contents of a tree into the session's store.
func (t *trees) adoptBlobs(of *files.Tree) error {
	for _, e := range of.Entries {
		if e.Digest.IsZero() {
			continue
		}
		if err := t.adoptBlob(e.Digest); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	return nil
}

func (t *trees) adoptBlob(d cas.Digest) error {
	if _, err := t.s.store.Size(d); err == nil {
		return nil
	}
	return cas.Copy(t.s.store, t.store, d)
}

// write writes what the run changed in the work tree as workspace.diff.
func (t *trees) write(sync bool) error {
	if t.before == nil || t.after == nil {
		return nil
	}
	return recording.WriteWith(filepath.Join(t.s.dir, recording.DiffName), func(w io.Writer) error {
		return files.WritePatch(w, files.Changes(t.before, t.after), t.made)
	}, sync)
}

// What of a work tree no snapshot covers is copied up to these bounds for a replay outside the jail.
const (
	maxCopiedFiles = 20_000
	maxCopiedBytes = 256 << 20
)

// A copyBudget is what may still be copied.
type copyBudget struct {
	files int
	bytes int64
}

// errTooMuch ends a walk that exceeds a budget.
var errTooMuch = errors.New("too much to copy")

// fits reports whether path, and all below it, may be copied, and takes it off the budget where it may.
func (c *copyBudget) fits(path string) bool {
	left := *c
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be looked at is not copied
		}
		left.files--
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			left.bytes -= info.Size()
		}
		if left.files < 0 || left.bytes < 0 {
			return errTooMuch
		}
		return nil
	})
	if err != nil {
		return false
	}
	*c = left
	return true
}

// copyInto copies the file, link or directory at from to path below root. Sockets, FIFOs, devices and what cannot be read are
// left out; the first error is returned in the end.
func copyInto(root *os.Root, path, from string) error {
	var first error
	err := filepath.WalkDir(from, func(at string, e fs.DirEntry, err error) error {
		rel, errRel := filepath.Rel(from, at)
		if err = errors.Join(err, errRel); err == nil {
			err = copyOne(root, filepath.Join(path, rel), at, e)
		}
		if err != nil && first == nil {
			first = err
		}
		if err != nil && e != nil && e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return errors.Join(err, first)
}

func copyOne(root *os.Root, to, from string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return root.Mkdir(to, info.Mode().Perm()|0o700)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return root.Symlink(target, to)
	case !info.Mode().IsRegular():
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
