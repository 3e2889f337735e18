package fidelity

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A comparison is two recordings that are compared: what every rule reads, and what it adds to.
type comparison struct {
	explainer // whose options are those of the comparison
	mode      Mode
	report    *Report
	sides     [2]laneSide
	differ    differ // for what masking and identity need; pairs get one of their own
	found     []placed
	pids      processIDs
	refusals  []refusal         // requests of the replay that nothing answered
	urls      map[string]string // of WebSockets, by lane
}

func newComparison(mode Mode, o *LaneOptions) *comparison {
	c := &comparison{mode: mode, report: newReport(mode), urls: make(map[string]string)}
	if o != nil {
		c.o = *o
	}
	c.report.Crossed, c.report.names = new(c.o.Crossed), c.o.Sides // a copy: a report outlives the tapes and what answered the replay
	c.report.Unasked, c.report.Refused, c.report.Masked = []RequestRef{}, []RequestRef{}, map[string]int{}
	maps.Copy(c.report.Masked, c.o.Masked)
	c.report.Notes = append([]string{}, c.o.Notes...)
	c.report.NotCompared, c.report.NotCovered, c.report.usual = c.o.NotCompared, c.o.NotCovered, c.o.Usual
	c.differ = differ{lanes: true, mask: c.o.masked, names: c.o.Sides, pids: &c.pids}
	return c
}

// records yields what was not left out, of both sides.
func (c *comparison) records(of sorts) iter.Seq2[Side, *entry] {
	return func(yield func(Side, *entry) bool) {
		for _, s := range []Side{Recorded, Replay} {
			for e := range c.sides[s].records(of) {
				if !yield(s, e) {
					return
				}
			}
		}
	}
}

func (c *comparison) note(format string, args ...any) {
	c.report.Notes = append(c.report.Notes, fmt.Sprintf(format, args...))
}

func (c *comparison) place(p placed) { c.found = append(c.found, p) }

// end is the place behind all that the replay did.
func (c *comparison) end() int { return len(c.sides[Replay].entries) }

// identityOf is the identity of a record. In PhaseAware records of two phases are never the same.
func (c *comparison) identityOf(e *entry) uint64 {
	if c.mode == PhaseAware && e.runtime() {
		return ^e.id
	}
	return e.id
}

// programOf returns the record of the program itself; nil for none.
func (c *comparison) programOf(s Side) *tape.ProcessSpawn {
	p, _ := c.sides[s].programEntry().spawn()
	return p
}

// inputs are what the runs were given: first the arguments of the program, then what the caller names, by chance too where that is asked for.
func (c *comparison) inputs(chance bool) []source {
	args := source{name: "the program's arguments"}
	if p := c.programOf(Recorded); p != nil {
		args.was = strings.Join(p.Args, "\n")
	}
	if p := c.programOf(Replay); p != nil {
		args.now = strings.Join(p.Args, "\n")
	}
	out := []source{args}
	for _, in := range c.o.Inputs {
		if in.Chance && !chance {
			continue
		}
		was, errA := in.Bytes(Recorded)
		now, errB := in.Bytes(Replay)
		if errA == nil && errB == nil {
			out = append(out, source{name: in.Name, was: string(was), now: string(now)})
		}
	}
	return out
}

// placed is a divergence and where the replay had come to when it showed.
type placed struct {
	Divergence
	at   int
	next int // of a request that it did not make: at of what was asked for once that had ended; 0 where that is not known
	rank int // 0 for what the replay did, 1 for what it did not do
	rec  *tape.Record
	evidence
}

// seq is the record's number; of what has no record, the screens, it stands behind those that the replay had by then.
func (p *placed) seq() uint64 {
	if p.Seq == nil {
		return math.MaxUint64
	}
	return *p.Seq
}

// refusal is a request that nothing answered.
type refusal struct {
	at      int
	seq     uint64
	request *request
}

// An entry is a record of one side and where it stands.
type entry struct {
	rec *tape.Record
	at  int    // place on its tape, from 0
	id  uint64 // what it is about

	state uint64 // of a file: a hash of its path and of what stands for its bytes, as the record was read
	whole uint64 // of a file: a hash of what compares of it (identifyFiles); 0 where that is not known
}

// spawn is the process that a record is of.
func (e *entry) spawn() (*tape.ProcessSpawn, bool) {
	if e == nil || e.rec == nil {
		return nil, false
	}
	p, ok := e.rec.Kind.(*tape.ProcessSpawn)
	return p, ok
}

// become puts another kind in the place of that of the record.
func (e *entry) become(k tape.Kind) {
	rec := *e.rec
	rec.Kind = k
	e.rec = &rec
}

func (e *entry) runtime() bool { return e.rec.Phase == tape.PhaseRuntimeFinalize }

// laneSide is one tape.
type laneSide struct {
	entries []entry
	sorts   []sorts // of each entry
	calls   int
	program int // place of the last process_spawn, which is the recorded program; -1 for none
}

// add adds a record. It comes before anything points to an entry.
func (s *laneSide) add(rec *tape.Record, id uint64) {
	if len(s.entries) == 0 {
		s.program = -1
	}
	switch rec.Kind.(type) {
	case *tape.LLMCall:
		s.calls++
	case *tape.ProcessSpawn:
		s.program = len(s.entries)
	}
	e := entry{rec: rec, at: len(s.entries), id: id}
	if f := tape.FileOf(rec.Kind); f != nil {
		e.state = stateHash(f)
	}
	s.entries, s.sorts = append(s.entries, e), append(s.sorts, sortOf(rec.Kind))
}

// programEntry is the entry of the program itself; nil for none.
func (s *laneSide) programEntry() *entry {
	if len(s.entries) == 0 || s.program < 0 {
		return nil
	}
	return &s.entries[s.program]
}

// records yields what is of one of some sorts and was not left out.
func (s *laneSide) records(of sorts) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for i, is := range s.sorts {
			if is&of == 0 {
				continue
			}
			if e := &s.entries[i]; e.rec != nil && !yield(e) {
				return
			}
		}
	}
}

// sorts are what records are about. A rule that looks at some sorts alone does not touch the others, which are far away in memory: of a long
// tape that is most of what comparing costs.
type sorts uint8

const (
	ofFile sorts = 1 << iota
	ofProcess
	ofExchange
	ofServer // messages to and from tool servers
	ofSocket
	ofOther
	byOthers       // what the program itself did not do (tape.OriginOf), whatever it is about
	anything sorts = 1<<iota - 1
)

func sortOf(k tape.Kind) sorts {
	is := ofOther
	switch k.(type) {
	case *tape.FileRead, *tape.FileWrite, *tape.FileDelete:
		is = ofFile
	case *tape.ProcessSpawn:
		is = ofProcess
	case *tape.LLMCall, *tape.HTTPExchange:
		is = ofExchange
	case *tape.MCPOpen, *tape.MCPJSONRPC, *tape.MCPText, *tape.MCPClose:
		is = ofServer
	case *tape.WSOpen, *tape.WSMessage, *tape.WSClose:
		is = ofSocket
	}
	if tape.OriginOf(k) != 0 {
		is |= byOthers
	}
	return is
}
