package deck

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
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
	asked func(exchange.Key) error
	// answered is told of each exchange whose answer is about to begin (exchange.TapOptions.Answered); set likewise.
	answered func(opener, arrival, recorded uint64) (begins func())

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
	s.asked, s.answered = func(exchange.Key) error { return nil }, func(_, _, _ uint64) func() { return func() {} }
	if err := s.openTape(o); err != nil {
		return nil, err
	}
	// A replay's answers are on a tape already: what is cut off loses nothing.
	tap := &exchange.TapOptions{Replay: o.replay, Closed: o.replay && !o.live, TrueLength: true}
	tap.Asked = func(k exchange.Key) error { return s.asked(k) }
	tap.Answered = func(opener, arrival, recorded uint64) func() { return s.answered(opener, arrival, recorded) }
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
	s.flushing.Go(func() { s.flush(ctx) })
	return nil
}

// flushEvery is how long a record is in the recorder's own memory at most: then who looks at the run sees it, and a kill does not take it.
const flushEvery = time.Second

// flush hands on what nothing else had to wait for.
func (s *session) flush(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = s.rec.Flush() // the recorder tells fail
		}
	}
}

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
