// Package derive makes things of a recording: the session log of its program's conversation with a model, the work tree as the run
// found it or left it, the answers of its tool servers for other clients.
//
// The session log tells what was said in order: prompts, answers, tool calls, results, verdicts of policies, sub-agents. It is
// derived from the tape alone, so that the same tape gives the same log; what cannot be read is left out, and said.
package derive

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// SessionLogName is the session log of a recording.
const SessionLogName = "session.jsonl"

// A SessionReader gives a session log as JSON lines, {"seq":0,"event":{…},"g":1,"t_ms":0} each.
type SessionReader struct {
	Derived bool // it is derived while it is read

	r     io.ReadCloser
	notes []string
	done  chan struct{} // closed once the deriving has ended
}

// SessionLog opens the session log of a recording: its session.jsonl, or, where it has none (it is unfinished, or an older
// tapedeck made it), what its tape gives. Close must follow. An error of the tape comes with Read.
func SessionLog(rec *recording.Recording) (*SessionReader, error) {
	path := filepath.Join(rec.Dir, SessionLogName)
	if rec.Finished() { // else it may have been killed before the log was whole, or go on
		f, err := regular.Open(path)
		if err == nil {
			return &SessionReader{r: f}, nil
		}
		if recording.Gone(err) != nil {
			return nil, err
		}
	}
	return deriving(SourceOf(rec)), nil
}

// SourceOf is what the session log of rec is derived from.
func SourceOf(rec *recording.Recording) *Source {
	return &Source{Path: rec.TapePath(), ID: rec.Manifest.ID, exit: rec.Manifest.Exit, Open: !rec.Finished()}
}

// SessionLogOfTape is SessionLog for the bare tape at path. Its runs are called by its name without the ending.
func SessionLogOfTape(path string) (*SessionReader, error) {
	if f, err := regular.Open(path); err != nil {
		return nil, err
	} else if err := f.Close(); err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	return deriving(&Source{Path: path, ID: cmp.Or(strings.TrimSuffix(name, filepath.Ext(name)), name)}), nil
}

// errStopped ends a deriving that nobody reads any more.
var errStopped = errors.New("nobody reads the session log any more")

// deriving starts the deriving of a session log. Its goroutine ends when Read gave its last, or with Close, which waits for it.
func deriving(src *Source) *SessionReader {
	pr, pw := io.Pipe()
	s := &SessionReader{Derived: true, r: pr, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		notes, err := src.Derive(func(line []byte) error {
			_, err := pw.Write(line)
			return err
		})
		s.notes = notes.texts(false)
		pw.CloseWithError(err) // nil is the end
	}()
	return s
}

// Read implements io.Reader.
func (s *SessionReader) Read(b []byte) (int, error) { return s.r.Read(b) }

// Close ends the reading.
func (s *SessionReader) Close() error {
	if !s.Derived {
		return s.r.Close()
	}
	s.r.(*io.PipeReader).CloseWithError(errStopped) // which it never refuses
	<-s.done
	return nil
}

// Notes says what of the tape could not be read, or stands for less than it seems. It waits for the end of a deriving, so it is
// for who has read everything or has called Close.
func (s *SessionReader) Notes() []string {
	if s.Derived {
		<-s.done
	}
	return s.notes
}

// A place is a record of the tape.
type place struct {
	seq uint64
	g   uint64
	ms  int64
}

func placeOf(rec *tape.Record) place { return place{rec.Seq, rec.G, rec.MonotonicMS} }

// SessionRules is the version of the rules by which a session log is derived from a tape. It grows whenever the same tape gives
// another log than before.
const SessionRules = 1

// WriteOptions say how the session log of a recording is written. Hide and Log are needed.
type WriteOptions struct {
	Hide  func(line []byte) (hidden []byte, found bool) // takes secrets out
	Log   *slog.Logger
	Sync  bool
	Heard func(sessionlog.Event) error // is told of each event; nil for nobody
}

// WriteLog leaves session.jsonl in dir beside its tape, or nothing where no model said anything, and says so in m, whose
// id and exit stand. It fails for what is written to the disk alone: what of the tape cannot be read is left out, and said in the
// ledger of m.
//
// The tape is scrubbed by now. But a secret that a model spelled in pieces, one an event, stands in one piece in the log: so
// that is scrubbed once more, and the manifest says which of its lines are not what the tape gives.
func WriteLog(dir string, m *recording.Manifest, o *WriteOptions) error {
	m.SessionRules, m.SessionHidden = 0, nil
	src := &Source{Path: filepath.Join(dir, recording.TapeName), ID: m.ID, exit: m.Exit, Heard: o.Heard}
	var lost []string
	var taped, written error // of what the log is derived from, and of the log itself
	var altered []int        // the lines in which something was hidden, from 1
	n := 0
	err := recording.WriteWith(filepath.Join(dir, SessionLogName), func(w io.Writer) error {
		var notes *notes
		notes, taped = src.Derive(func(line []byte) error {
			n++
			hidden, found := o.Hide(line)
			if found {
				altered = append(altered, n)
			}
			_, written = w.Write(hidden)
			return written
		})
		if lost = notes.texts(true); taped == nil && n == 0 {
			return errNoLog
		}
		return taped
	}, o.Sync)
	switch {
	case taped != nil && written == nil:
		o.Log.Warn("there is no session log: the tape cannot be read to its end", "err", taped)
		return nil
	case err != nil && !errors.Is(err, errNoLog):
		return err
	case err == nil:
		m.SessionRules, m.SessionHidden = SessionRules, altered
	}
	if len(lost) > 0 {
		a := m.Axes["llm"]
		a.NotCovered = append(slices.Clip(a.NotCovered), lost...)
		m.Axes["llm"] = a
	}
	return nil
}

// errNoLog keeps a session log from being written in which nothing would stand.
var errNoLog = errors.New("no model said anything")

// notes are what of a tape is not in its session log, and why: each reason once.
type notes []note

type note struct {
	reason string
	first  place // where it stood first
	count  int
	lost   bool // something of the conversation is lost
}

// maxNotes bounds the reasons: each may quote what stood there.
const maxNotes = 100

func (n *notes) add(at place, err error) {
	n.note(at, "left out of the session log: "+err.Error()).lost = true
}

// say notes what is in its place, and may be looked for.
func (n *notes) say(at place, reason string) { n.note(at, reason) }

func (n *notes) note(at place, reason string) *note {
	if len(*n) >= maxNotes && !slices.ContainsFunc(*n, func(o note) bool { return o.reason == reason }) {
		reason = "and more of the kind"
	}
	i := slices.IndexFunc(*n, func(o note) bool { return o.reason == reason })
	if i < 0 {
		i = len(*n)
		*n = append(*n, note{reason: reason, first: at})
	}
	(*n)[i].count++
	return &(*n)[i]
}

// texts returns all of them, or those alone that something is lost by.
func (n *notes) texts(lost bool) (out []string) {
	for _, o := range *n {
		if lost && !o.lost {
			continue
		}
		text := fmt.Sprintf("record %d: %s", o.first.seq, o.reason)
		if o.count > 1 {
			text += fmt.Sprintf(" (and %d more)", o.count-1)
		}
		out = append(out, text)
	}
	return out
}

// An MCPBook is what was said with MCP servers, for clients that nobody recorded.
type MCPBook struct {
	*mcp.Book
	// Reveal puts the secrets of the environment in the place of their placeholders.
	Reveal func([]byte) []byte
	Log    *mcp.Log  // writes nothing: brings messages into the form of the tape
	Store  cas.Store // of the tape

	tape io.Closer
}

// OpenMCPBook reads the conversations with MCP servers of the recording, or the bare tape, at path. What a client asks is compared under the
// recording's masks, and secrets in it by their placeholders: those that env (NAME=VALUE) or their shape give away, and those that the
// recording met before it knew them. each is told of each record of the tape; nil is not. The book must be closed.
func OpenMCPBook(path string, env []string, each func(*tape.Record)) (*MCPBook, error) {
	s, err := secrets.OfProject(env)
	if err != nil {
		return nil, err
	}
	rec, t, err := recording.OpenEither(path)
	if err != nil {
		return nil, err
	}
	b := &MCPBook{Reveal: s.Reveal, Store: t.Store, tape: t}
	if err := b.read(rec, t, s, each); err != nil {
		t.Close()
		return nil, err
	}
	return b, nil
}

func (b *MCPBook) read(rec *recording.Recording, t *tape.Tape, s *scrub.Scrubber, each func(*tape.Record)) (err error) {
	o := &mcp.BookOptions{Scrub: s}
	if rec != nil {
		if o.Mask, err = rec.Manifest.Masking.Masker(&rec.Manifest.Roots); err != nil {
			return err
		}
		s.Seek(recording.LateSecrets(rec.Manifest.Secrets))
	}
	b.Log = mcp.NewLog(nil, s, o.Mask, nil)
	b.Book, err = mcp.NewBook(func(yield func(*tape.Record, error) bool) {
		for rec, err := range t.Records() {
			if err == nil && each != nil {
				each(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, t.Store, o)
	return err
}

// Close closes the tape. Nothing is to be answered any more.
func (b *MCPBook) Close() error { return b.tape.Close() }

// ErrNoTree is returned where a recording holds no work tree.
var ErrNoTree = errors.New("the recording holds no work tree")

// ErrUnfinished is returned where what the program changed last is not on the tape.
var ErrUnfinished = errors.New("the recording is unfinished: what the program changed last is not on the tape")

// Restore makes the work tree as the run of r found it in dir, which must not exist or be empty. It returns the files that it
// left out because they hold secrets.
func Restore(r *recording.Recording, dir string) (leftOut []string, err error) {
	t, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("%s: %w", r.Dir, ErrNoTree)
	}
	store, err := r.Store()
	if err != nil {
		return nil, err
	}
	return files.Restore(t, store, dir)
}

// RestoreEnd makes the work tree as the run of r left it in dir, as Restore does.
func RestoreEnd(r *recording.Recording, dir string) (leftOut []string, err error) {
	_, after, store, err := states(r)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return files.Restore(after, store, dir)
}

// states are the work tree as the run of r found it and as it left it, and the store of both, to be closed.
func states(r *recording.Recording) (before, after *files.Tree, store *files.Staging, err error) {
	if !r.Finished() {
		return nil, nil, nil, fmt.Errorf("%s: %w", r.Dir, ErrUnfinished)
	}
	if before, err = r.Tree(); err != nil {
		return nil, nil, nil, err
	}
	if before == nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", r.Dir, ErrNoTree)
	}
	after, store, err = endOf(r, before)
	return before, after, store, err
}

// WritePatch writes workspace.diff: what the run of r made of the work tree that it found, as before, the tape and the blobs have it.
func WritePatch(w io.Writer, r *recording.Recording, before *files.Tree) error {
	after, store, err := endOf(r, before)
	if err != nil {
		return err
	}
	defer store.Close()
	return files.WritePatch(w, files.Changes(before, after), store)
}

// endOf is the work tree as the run of r left it that found before, and the store of both, to be closed.
func endOf(r *recording.Recording, before *files.Tree) (after *files.Tree, store *files.Staging, err error) {
	f, err := r.OpenTape()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if store, err = files.NewStaging(f.Store, ""); err != nil {
		return nil, nil, err
	}
	if after, err = files.After(before, f.Records(), store); err != nil {
		store.Close()
		return nil, nil, err
	}
	return after, store, nil
}

// Apply does to the work tree what the run did to it or, reversed, undoes it, and returns the paths that it changed, and how
// many of Git's own files, below .git, it left as they are.
// Where a path does not stand as the run found it (reversed: left it), nothing is changed and the error is a
// *files.ConflictError that lists every one.
func Apply(r *recording.Recording, reverse bool) (paths []string, inGit int, err error) {
	before, after, store, err := states(r)
	if err != nil {
		return nil, 0, err
	}
	defer store.Close()
	changes := files.Changes(before, after)
	for i := range changes {
		if changes[i].InGit() {
			inGit++
		} else {
			paths = append(paths, changes[i].Path)
		}
	}
	return paths, inGit, files.Apply(r.Manifest.Roots.Tree, changes, store, reverse)
}
