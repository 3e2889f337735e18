package deck

import (
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A talkSource is what a session log is derived from.
type talkSource struct {
	path string // of the tape
	id   string // what its runs are called by
	exit *Exit  // of the program; nil where it is not known
	open bool   // the run has not ended: it is going on, or its recorder was killed

	heard func(sessionlog.Event) error // told of each event before its line; nil for nobody
}

// A talk derives the session log of one tape.
type talk struct {
	src    *talkSource
	store  cas.Store
	lanes  *talkSurvey
	main   *talkLane                    // nil where nothing was said
	emit   func(line []byte) error      // nil where nobody wants lines
	heard  func(sessionlog.Event) error // nil for nobody; told of each event, in order, before its line is given
	stale  bool                         // what was derived so far holds no longer, now that more of the tape is known
	notes  talkNotes
	dialog *sessionlog.Dialog

	lines    int
	buf      []byte
	at       place // of the record that is read
	listener *llm.Listener
	last     place           // of the last record of the main lane
	lastID   string          // of the last answer, as the provider calls it
	system   string          // of the main lane
	tools    bool            // the main lane's requests declare some
	asked    int             // messages that the last request of a turn had
	before   int             // messages that the last request of the main lane had, 0 for none
	calls    int             // of the last answer
	began    int             // turn before the run
	known    map[string]bool // ids of calls that were made
	pending  *unsure         // an answer that may not have counted
	waiting  []*talkLane     // lanes that may be those of sub-agents
	subs     []*talkLane     // sub-agents that run
	gated    map[string]bool // actions that wait for leave
	archived int             // the first line that was not compressed
	summary  string          // what a call said that may have been a summary
	quoted   string          // the summary that the request at hand begins with; "" for none
	exit     *Exit           // of the program
}

// An unsure is a call of the main lane that is a turn only if the program goes on from it.
type unsure struct {
	said *llm.Said
	at   place
	cut  bool // else it declared no tools where those before did: a summary, unless the history goes on with it
}

// derive gives the lines of the session log, in order, each valid until the next, and returns what of it could not be read. The errors are those of emit and of
// the tape.
func (src *talkSource) derive(emit func(line []byte) error) (*talkNotes, error) {
	d := newTalk(src, newTalkSurvey())
	d.emit, d.heard = emit, src.heard
	err := d.run()
	return &d.notes, err
}

func newTalk(src *talkSource, lanes *talkSurvey) *talk {
	d := &talk{src: src, lanes: lanes, store: lanes.store, known: make(map[string]bool), listener: new(llm.Listener), exit: src.exit}
	d.dialog = sessionlog.NewDialog(src.id, d.put)
	return d
}

func (d *talk) run() error {
	if err := d.survey(); err != nil || d.main == nil {
		return err
	}
	t, err := tape.Open(d.src.path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return err
	}
	defer t.Close()
	d.store = t.Store
	for rec, err := range t.Records() {
		if err == nil {
			err = d.record(rec)
		}
		if err != nil {
			return err
		}
	}
	return d.end()
}

// put gives an event its line.
func (d *talk) put(e sessionlog.Event) error { return d.putAt(e, d.at) }

func (d *talk) putAt(e sessionlog.Event, at place) error {
	if c := e.Base(); c.TapeSeq == nil {
		c.TapeSeq = &at.seq
	}
	if d.heard != nil {
		if err := d.heard(e); err != nil {
			return err
		}
	}
	if d.emit == nil {
		d.lines++
		return nil
	}
	l := talkLine{seq: d.lines, place: at, event: e}
	line, err := l.append(d.buf[:0])
	if err != nil {
		d.notes.add(at, err)
		return nil
	}
	d.buf = line
	d.lines++
	return d.emit(line)
}

func (d *talk) record(rec *tape.Record) error {
	d.at = placeOf(rec)
	switch k := rec.Kind.(type) {
	case *tape.LLMCall:
		return d.call(k)
	case *tape.PolicyVerdict:
		return d.verdict(k)
	case *tape.ProcessSpawn: // the last one is the program
		if d.src.exit == nil {
			d.exit = &Exit{Code: k.ExitCode, Signal: k.Signal}
		}
	}
	return nil
}

// call reads a call of a model.
func (d *talk) call(k *tape.LLMCall) error {
	lane := d.lanes.lanes[k.Lane]
	switch {
	case unmatched(k) || lane == nil:
		return nil
	case lane.left: // it had not come to its end
		d.stale = true
		return nil
	case lane == d.main:
		return d.mainCall(k)
	}
	return d.aside(k, lane)
}

// bodies reads the payloads of a call.
func (d *talk) bodies(k *tape.LLMCall) (request, response []byte, err error) {
	if request, err = d.body(k.RequestPayload); err != nil {
		return nil, nil, fmt.Errorf("its request: %w", err)
	}
	if response, err = d.body(k.Response); err != nil {
		return nil, nil, fmt.Errorf("its answer: %w", err)
	}
	return request, response, nil
}

func (d *talk) body(p *tape.Payload) ([]byte, error) { return bodyIn(d.store, p) }

// bodyIn reads a payload that holds what was said.
func bodyIn(store cas.Store, p *tape.Payload) ([]byte, error) {
	switch {
	case p == nil:
		return nil, errors.New("was not kept")
	case p.Len > llm.MaxSaid:
		return nil, fmt.Errorf("has %d bytes, and %d are read at most", p.Len, int64(llm.MaxSaid))
	}
	return p.Bytes(store)
}

// mainCall reads a call of the main lane.
func (d *talk) mainCall(k *tape.LLMCall) error {
	request, response, err := d.bodies(k)
	var said *llm.Said
	if err == nil {
		said, err = d.listener.Read(k, request, response)
	}
	if errors.Is(err, llm.ErrNoTalk) {
		return nil
	}
	if err != nil {
		d.notes.add(d.at, err)
		return nil
	}
	d.last = d.at
	if err := d.settle(said); err != nil {
		return err
	}
	if err := d.agents(k.Arrival); err != nil {
		return err
	}
	err = d.hear(said)
	d.before = said.Messages
	return err
}
