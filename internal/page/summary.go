package page

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// rules is the version of what a summary says of a tape. It grows whenever the same tape gives another one than before.
const rules = 6

// blockRows is how many records stand in a block.
const blockRows = 256

// A summary is what is read off a tape once: what the documents need that a click must not wait for.
//
// On disk it is derived (package library, kind Index): a line of JSON with the lengths of three gzip streams, then those: the summary itself,
// its changes, which are unpacked when somebody looks at files, and the index, which goes to the page as it lies there.
type summary struct {
	Rules         int            `json:"rules"`
	Tape          int64          `json:"tape"`     // bytes of the tape that were read
	Modified      int64          `json:"modified"` // when the tape was, in ns: one that was written anew may be as long
	Rows          int            `json:"rows"`
	Payloads      int64          `json:"payloads"` // bytes
	Blocks        []int64        `json:"blocks"`   // where each block of records begins on the tape
	Seqs          []int64        `json:"seqs"`     // none where row N has the seq N
	Conversations []Conversation `json:"conversations"`
	Files         int            `json:"files"` // that changed
	Refused       int            `json:"refused"`
	Problems      []Problem      `json:"problems"`

	changes []byte // gzip of the JSON of changes
	index   []byte // gzip of the JSON of an Index
}

// lengths is the first line of a summary on disk.
type lengths struct {
	Rules   int    `json:"rules"`
	Prices  string `json:"prices,omitempty"` // llm.Prices.ID of the table that its costs go by
	Summary int    `json:"summary"`
	Changes int    `json:"changes"`
	Index   int    `json:"index"`
}

// fit reports whether the streams are so many bytes together.
func (n *lengths) fit(all int) bool {
	return n.Summary >= 0 && n.Changes >= 0 && n.Summary <= all && n.Changes <= all-n.Summary && n.Index == all-n.Summary-n.Changes
}

// Prepare writes the summary of a recording that has ended, by the prices of its work tree, so that nobody waits for it later. What cannot be
// read or written is let go: it is made again when it is asked for.
func Prepare(rec *recording.Recording) {
	if !library.KeepsDerived(rec) {
		return
	}
	prices, err := recording.PricesOf(rec.Manifest.Roots.Tree)
	if err != nil {
		return
	}
	if s, err := summarize(rec, prices); err == nil {
		s.keep(rec, prices)
	}
}

// summaryOf returns the summary of a recording: that which is kept, where it is of this tape, version and prices, else a new one.
func summaryOf(rec *recording.Recording, prices *llm.Prices) (*summary, error) {
	if s := keptSummary(rec, prices); s != nil {
		return s, nil
	}
	s, err := summarize(rec, prices)
	if err == nil && rec.Finished() {
		s.keep(rec, prices)
	}
	return s, err
}

// keep writes a summary beside its recording.
func (s *summary) keep(rec *recording.Recording, prices *llm.Prices) {
	own := packed(jsonscan.MustMarshal(s))
	head := jsonscan.MustMarshal(&lengths{rules, prices.ID(), len(own), len(s.changes), len(s.index)})
	library.KeepDerived(rec, library.Index, bytes.Join([][]byte{head, []byte("\n"), own, s.changes, s.index}, nil))
}

// keptSummary is what keep wrote; nil where there is none, or one of another tape, version or table of prices.
func keptSummary(rec *recording.Recording, prices *llm.Prices) *summary {
	b, by := library.ReadDerived(rec, library.Index)
	if by != version.Version {
		return nil
	}
	s := parseSummary(b, sizeOf(rec.TapePath()), prices.ID())
	if s != nil && s.Modified != modifiedAt(rec.TapePath()) {
		return nil
	}
	return s
}

// parseSummary reads what keep wrote of a tape of so many bytes, by a table of prices; nil of anything else.
func parseSummary(b []byte, size int64, prices string) *summary {
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	var n lengths
	if json.Unmarshal(line, &n) != nil || n.Rules != rules || n.Prices != prices || !n.fit(len(rest)) {
		return nil
	}
	s := new(summary)
	own, err := unpacked(rest[:n.Summary])
	if err != nil || json.Unmarshal(own, s) != nil || s.Tape != size || !s.holds() {
		return nil
	}
	s.changes, s.index = rest[n.Summary:][:n.Changes], rest[n.Summary+n.Changes:]
	return s
}

// holds reports whether the parts of a summary fit each other.
func (s *summary) holds() bool {
	return s.Rows >= 0 && len(s.Blocks) == (s.Rows+blockRows-1)/blockRows && (len(s.Seqs) == 0 || len(s.Seqs) == s.Rows) && s.Problems != nil &&
		s.Conversations != nil && !slices.ContainsFunc(s.Blocks, func(at int64) bool { return at < 0 || at > s.Tape })
}

func modifiedAt(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.ModTime().UnixNano()
}

func sizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return st.Size()
}

// row returns which row a record is.
func (s *summary) row(seq uint64) (int, bool) {
	if len(s.Seqs) == 0 {
		return int(seq), seq < uint64(s.Rows)
	}
	for i, other := range s.Seqs { // a tape of another producer, or a damaged one
		if uint64(other) == seq {
			return i, true
		}
	}
	return 0, false
}

// turn finds a turn, and the one before it in its conversation; nil for none.
func (s *summary) turn(seq uint64) (of *Conversation, turn, before *TurnRow) {
	for i := range s.Conversations {
		c := &s.Conversations[i]
		for j := range c.Turns {
			if c.Turns[j].Seq != seq {
				continue
			}
			if j > 0 {
				before = &c.Turns[j-1]
			}
			return c, &c.Turns[j], before
		}
	}
	return nil, nil, nil
}

// tiny is below how many bytes a text is packed without looking for what it repeats: the tables for that take longer than all else.
const tiny = 8 << 10

func packed(b []byte) []byte {
	level := gzip.DefaultCompression
	if len(b) < tiny {
		level = gzip.HuffmanOnly
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		panic(fmt.Sprintf("page: %v", err)) // both levels are there
	}
	z.Write(b) // a buffer takes all
	z.Close()
	return out.Bytes()
}

// maxUnpacked bounds what a derived file unpacks to.
const maxUnpacked = 256 << 20

func unpacked(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, maxUnpacked))
}

// A taped is the tape of a recording: its summary, and its records. It may be used by several goroutines at once.
type taped struct {
	rec    *recording.Recording
	prices *llm.Prices
	store  *cas.Dir // nil for none

	mu      sync.Mutex
	summary *summary // guarded by mu; of a run that is being recorded that of its last change
	growing *growing // guarded by mu; of a run that is being recorded
}

// A growing is the survey of a tape that is being written, and where it goes on.
type growing struct {
	survey *survey
	at     int64
}

// grow reads what has come since it was asked last, up to the last whole line. r.mu is held.
func (r *taped) grow() (*summary, error) {
	if r.growing == nil {
		r.growing = &growing{survey: newSurvey(r.store, r.prices)}
	}
	g := r.growing
	size := sizeOf(r.rec.TapePath())
	var damage error
	err := r.lines(g.at, func(line []byte) bool {
		at := g.at
		g.at += int64(len(line)) + 1
		if at == 0 {
			return true // the header
		}
		rec, err := tape.ParseRecord(line)
		if err != nil {
			damage, g.at = err, at
			return false
		}
		g.survey.add(rec, at)
		return g.at < size
	})
	if err != nil && errors.As(err, new(*fs.PathError)) { // it cannot be read at all
		return nil, err
	}
	if err == nil {
		err = damage
	}
	s := g.survey.close()
	if err != nil {
		out := *s
		out.Problems = append(out.Problems, Problem{recording.TapeName, err.Error()})
		s = &out
	}
	s.Tape = size
	return s, nil
}

// sum returns what is known of the tape; of one that grows, what it comes to now.
func (r *taped) sum() (*summary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary != nil && (r.rec.Finished() || r.summary.Tape == sizeOf(r.rec.TapePath())) {
		return r.summary, nil
	}
	var s *summary
	var err error
	if !r.rec.Finished() && r.rec.Live() == recording.LiveYes {
		s, err = r.grow()
	} else {
		s, err = summaryOf(r.rec, r.prices)
	}
	if err == nil {
		r.summary = s
	}
	return s, err
}

// changes returns a summary with its changes: of a kept one whose changes are damaged both are made anew.
func (r *taped) changes(s *summary) (_ *summary, _ *changes, err error) {
	if c := s.changed(); c != nil {
		return s, c, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.summary, err = summarize(r.rec, r.prices); err != nil {
		return nil, nil, err
	}
	r.summary.keep(r.rec, r.prices)
	return r.summary, r.summary.changed(), nil
}

// lines gives the lines of a tape from an offset on, each without its newline and valid until the next, until f says false.
func (r *taped) lines(from int64, f func(line []byte) bool) error {
	file, err := regular.Open(r.rec.TapePath())
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	in := jsonscan.NewLines(file, tape.MaxLine+1)
	for {
		line, err := in.Next()
		if err != nil || in.Torn() { // a line without its end is not whole
			return recording.NotEOF(err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && !f(line) {
			return nil
		}
	}
}

// records makes a block of records, as they stand on the tape.
func (r *taped) records(block int) (*Records, error) {
	s, err := r.sum()
	if err != nil {
		return nil, err
	}
	if block < 0 || block >= len(s.Blocks) {
		return nil, ErrNoDocument
	}
	out := &Records{First: block * blockRows, Records: []json.RawMessage{}}
	n := min(blockRows, s.Rows-out.First)
	err = r.lines(s.Blocks[block], func(line []byte) bool {
		if !json.Valid(line) {
			return false // the summary says so
		}
		out.Records = append(out.Records, bytes.Clone(line))
		return len(out.Records) < n
	})
	return out, err
}

// record reads one record.
func (r *taped) record(s *summary, seq uint64) (rec *tape.Record, err error) {
	row, ok := s.row(seq)
	if !ok {
		return nil, fmt.Errorf("%w: the tape has no record %d", ErrNoDocument, seq)
	}
	skip := row % blockRows
	errLines := r.lines(s.Blocks[row/blockRows], func(line []byte) bool {
		if skip == 0 {
			rec, err = tape.ParseRecord(line)
		}
		skip--
		return skip >= 0
	})
	if rec == nil && err == nil {
		err = errors.Join(errLines, fmt.Errorf("%w: the tape ends before record %d", ErrNoDocument, seq))
	}
	return rec, err
}

// recordAt reads the record whose line begins at an offset of a tape.
func recordAt(from io.ReaderAt, offset int64) (*tape.Record, error) {
	line, err := jsonscan.NewLines(io.NewSectionReader(from, offset, tape.MaxLine+1), tape.MaxLine+1).Next()
	if err != nil {
		return nil, err
	}
	return tape.ParseRecord(bytes.TrimSpace(line))
}
