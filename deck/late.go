package deck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A secret becomes known when a header, a parameter or the text around it gives it away. What was written before that still
// holds it: the work tree's contents, requests and answers, stdin, arguments. So the end of a run looks through all of that
// once more, for those values alone, and brings what holds one into the form that it would have if the value had been known
// from the beginning. In this order, so that a recorder that is killed in between leaves a recording that loads:
//
//	tree.json          replaced whole, its new contents put into the store before
//	the rest of the tape
//	run.tape           replaced whole, its new blobs put into the store before
//	run.tape.part/     each part replaced whole
//	terminal/          its files replaced together: without a manifest meanwhile
//	workspace.diff, found-*.json, which are written now
//	blobs              those that nothing names any more are removed
//	recording.json     replaced whole, "finished"
//
// Until the last step the recording says that it is unfinished; what is left over by then goes with the next gc.

// A LateError says that secrets which became known late could not be taken out of what was written before.
type LateError struct {
	Dir   string   // of the recording or of the replay's tape
	Holds []string // what was not looked through, or not replaced
	Err   error
}

func (e *LateError) Error() string {
	return fmt.Sprintf("%s may hold secrets that became known after they were written, in %s: %v (delete it, or do not share it)",
		e.Dir, strings.Join(e.Holds, ", "), e.Err)
}

func (e *LateError) Unwrap() error { return e.Err }

// A late takes out of what one run has written what became known since it began. A nil one has nothing to do: every method
// returns at once.
type late struct {
	s        *session
	changing *changing
	o        lateOptions
	find     *scrub.Scrubber // what became known late, and nothing else
	mask     *masks.Masker   // counts for itself: the run's masks were counted when it was recorded
	class    exchange.Classifier
	mcp      *mcp.Log

	search   *exchange.Search // of find
	stdin    *tape.Payload    // of the last spawn, where it was replaced
	replaced bool             // a blob may be named no longer
	holds    []string         // what may hold a secret still
	files    int              // looked through: contents of files and records
	bytes    int64
}

// lateOptions say how a late works. Zero works.
type lateOptions struct {
	off      bool // of a replay whose recording was made by a tapedeck that did not do so: it would compare otherwise
	sync     bool
	progress func(items int, bytes int64, done bool) // nil for nobody
}

// The parts of a recording that a late goes through, as an error names them.
const (
	lateTree     = "the work tree's files (" + treeName + " and the blobs)"
	lateTape     = "the tape (" + tapeName + " and the blobs)"
	lateParts    = "answers that were not kept (" + partName + ")"
	lateTerminal = "the terminal (" + terminalName + ")"
	lateBlobs    = "blobs that nothing names"
	lateManifest = "arguments and variables (" + manifestName + ")"
)

// newLate returns what takes out of s what became known since it began; nil where nothing did.
func newLate(s *session, c *changing, o lateOptions) (*late, error) {
	find := s.scrub.Since(s.begun)
	if find == nil || o.off {
		return nil, nil
	}
	l := &late{
		s: s, changing: c, o: o, find: find, search: exchange.NewSearch(s.store, find),
		holds: []string{lateTree, lateTape, lateParts, lateTerminal, lateBlobs, lateManifest},
	}
	var err error
	if l.mask, err = s.masking.masker(s.guard.roots); err != nil {
		return nil, l.failed(err)
	}
	l.class = classifier(l.mask, s.guard.mcp != nil)
	l.mcp = mcp.NewLog(s.rec, find, l.mask, nil)
	l.tell(0, 0)
	return l, nil
}

// step does what takes the secrets out of one part. After a failure the others are not begun.
func (l *late) step(part string, do func() error) error {
	if l == nil {
		return nil
	}
	if err := do(); err != nil {
		return l.failed(err)
	}
	var left []string
	for _, p := range l.holds {
		if p != part {
			left = append(left, p)
		}
	}
	l.holds = left
	return nil
}

func (l *late) failed(err error) error { return &LateError{Dir: l.s.dir, Holds: l.holds, Err: err} }

// beforeEnd hides them in what is known of files, from which the tape gets its last records.
func (l *late) beforeEnd() error {
	return l.step(lateTree, func() error {
		var items int
		var bytes int64
		changed, err := l.changing.hideLate(&files.LateOptions{
			Store: l.changing.trees.made, Late: l.find, All: l.s.scrub, Progress: func(n int, size int64) {
				items, bytes = n, size
				l.tell(items, bytes)
			},
		})
		l.files, l.bytes = l.files+items, l.bytes+bytes
		if err != nil || changed == 0 {
			return err
		}
		l.replaced = true
		path := filepath.Join(l.s.dir, treeName)
		if l.changing.trees.before == nil || !exists(path) { // a replay's is written at its end, where one is asked for
			return nil
		}
		return writeWith(path, l.changing.trees.before.Encode, l.o.sync)
	})
}

// afterEnd hides them in the tape, which has its end, in the parts and in what the terminal showed.
func (l *late) afterEnd() error {
	if err := l.step(lateTape, l.tape); err != nil {
		return err
	}
	if err := l.step(lateParts, l.parts); err != nil {
		return err
	}
	return l.step(lateTerminal, l.terminal)
}

// sweep removes the blobs that nothing names any more.
func (l *late) sweep() error {
	return l.step(lateBlobs, func() error {
		if !l.replaced {
			return nil
		}
		left, err := unnamed(l.s.dir+"/.", l.s.store) // with the dot, for it may be the link of a descriptor
		if err != nil {
			return err
		}
		var errs []error
		for d := range left {
			errs = append(errs, gone(os.Remove(l.s.store.Path(d))))
		}
		return errors.Join(errs...)
	})
}

// tell tells how much has been looked through of what is counted by itself.
func (l *late) tell(items int, bytes int64) {
	if l.o.progress != nil {
		l.o.progress(l.files+items, l.bytes+bytes, false)
	}
}

// told is tell for one more record.
func (l *late) told(rec *tape.Record) {
	l.files++
	for _, p := range tape.Payloads(rec.Kind) {
		l.bytes += p.Len
	}
	l.tell(0, 0)
}

// end takes the progress away.
func (l *late) end() {
	if l != nil && l.o.progress != nil {
		l.o.progress(l.files, l.bytes, true)
	}
}
