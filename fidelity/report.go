package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// MaxDivergences is how many divergences a Report lists. Further ones are counted in Omitted, so the score is exact
// while memory stays bounded.
const MaxDivergences = 10_000

// A Divergence is one difference between two tapes.
type Divergence struct {
	Seq      *uint64  `json:"seq"` // the recorded record's; the replay's for MissingInRecorded; nil for an outcome
	Category Category `json:"category"`
	Message  string   `json:"message"`         // one line
	Lane     string   `json:"lane,omitempty"`  // lane mode
	Cause    string   `json:"cause,omitempty"` // what made it differ, for a person; lines as Summary writes them

	// The two records, each in one line; empty on the side that has none. ReplaySeq is that of the replay's.
	Recorded  string  `json:"recorded,omitempty"`
	Replay    string  `json:"replay,omitempty"`
	ReplaySeq *uint64 `json:"replay_seq,omitempty"`

	Changes     []Change `json:"changes,omitempty"`      // the first of those that Cause tells
	MoreChanges int      `json:"more_changes,omitempty"` // how many are not in Changes
	// Nearest is the recorded request, never asked for, that Changes holds a refused one against.
	Nearest *uint64  `json:"nearest,omitempty"`
	rest    []Change // those that are not in Changes, for WriteText with All
	subject string   // of a message of a conversation: what it is, as tools/call read_file
	whole   bool     // Message tells all of the one change
	// afterRefusal marks what follows from a refused request: WriteText folds it.
	afterRefusal bool

	// Exchange is, of a difference between two screens, the last exchange that the replay had seen by then.
	Exchange string `json:"exchange,omitempty"`
	// Follows says where what is new here first appears on the replay, or after which refused request it comes: facts that the
	// two tapes show, never a guess. Empty where they show none.
	Follows string `json:"follows,omitempty"`
	// Hint is the next step where one is known: what kind of difference this is, and what makes it compare.
	Hint string `json:"hint,omitempty"`
	// Annotations are what people noted about the two records: see Report.Annotate.
	Annotations []Remark `json:"annotations,omitempty"`
}

// A RequestRef names a request in a report.
type RequestRef struct {
	Seq    *uint64 `json:"seq,omitempty"` // unasked: the recorded record's; refused: the replay's
	Method string  `json:"method"`
	URL    string  `json:"url"`
	Lane   string  `json:"lane,omitempty"`
	Cause  string  `json:"cause,omitempty"` // refused: nearest recorded request and what differs
}

// A Report is the verdict on two tapes.
type Report struct {
	Mode            string       `json:"mode"` // snake case
	RecordedRecords int          `json:"recorded_records"`
	ReplayRecords   int          `json:"replay_records"`
	Divergences     []Divergence `json:"divergences"` // never nil
	Score           float64      `json:"score"`       // 1 for none, 0 for as many as there are records, or more
	Omitted         int          `json:"omitted,omitempty"`

	// Lane mode only. Unasked, Refused, Masked and Notes are never nil there, and so always in the JSON.
	Crossed    *int `json:"crossed,omitempty"`
	Screens    int  `json:"screens,omitempty"`     // how many of the terminal were compared, where they count
	MCPCalls   int  `json:"mcp_calls,omitempty"`   // how many calls of tool servers were compared
	ModelCalls int  `json:"model_calls,omitempty"` // how many calls of models were recorded
	// Side is requests that nothing depends on and that differ: they do not gate, but a strict verdict counts them.
	Side        []SideTraffic  `json:"side,omitempty"`
	Unasked     []RequestRef   `json:"unasked,omitzero"`
	Refused     []RequestRef   `json:"refused,omitzero"`
	Masked      map[string]int `json:"masked,omitzero"`
	Notes       []string       `json:"notes,omitzero"`
	NotCompared []string       `json:"not_compared,omitempty"` // what was asked for and could not be looked at: status 1
	NotCovered  []string       `json:"not_covered,omitempty"`  // what the recordings never looked at

	// MaskedPairs are the places at which records differ though they compare as equal, and MoreMaskedPairs how many are not listed.
	MaskedPairs     []MaskedPair `json:"masked_pairs,omitempty"`
	MoreMaskedPairs int          `json:"more_masked_pairs,omitempty"`
	moreDoubtful    int

	// TimesRead counts the reads of the wall time of a replay that gives it again; nil for another.
	TimesRead *TimesRead `json:"times_read,omitempty"`

	usual map[string]string // of NotCovered: the short forms that WriteText uses
	names sideNames         // what the tapes are called
}

// TimesRead counts reads of the wall time.
type TimesRead struct {
	Recorded int `json:"recorded"` // of the processes that ran again
	Replay   int `json:"replay"`
	Beyond   int `json:"beyond"` // of Replay, those that got times which are not recorded
}

func newReport(mode Mode) *Report {
	return &Report{Mode: mode.Snake(), Divergences: []Divergence{}, Score: 1}
}

// Faithful reports whether nothing diverged and everything that was asked for could be compared. Where it is false,
// NotCompared decides between the exit statuses 1 and 2.
func (r *Report) Faithful() bool { return r.Total() == 0 && len(r.NotCompared) == 0 }

// Strictly reports whether the report is faithful and nothing differs that does not gate but is no mere remark either: side traffic.
func (r *Report) Strictly() bool { return r.Faithful() && len(r.Side) == 0 }

// Total is the number of divergences, those that are not listed too.
func (r *Report) Total() int { return len(r.Divergences) + r.Omitted }

// full reports whether further divergences are only counted.
func (r *Report) full() bool { return len(r.Divergences) >= MaxDivergences }

// add lists a divergence, or counts it when the list is full.
func (r *Report) add(ds ...Divergence) {
	n := min(len(ds), MaxDivergences-len(r.Divergences))
	r.Divergences = append(r.Divergences, ds[:n]...)
	r.Omitted += len(ds) - n
}

// rate sets the score from the number of divergences and of records.
func (r *Report) rate() {
	records := max(r.RecordedRecords, r.ReplayRecords, 1)
	r.Score = 1 - min(1, float64(r.Total())/float64(records))
}

// rateOutcome sets the score of an outcome, which is all or nothing.
func (r *Report) rateOutcome() {
	r.Score = 1
	if r.Total() > 0 {
		r.Score = 0
	}
}

// MarshalJSON writes the report: divergences is always a list.
func (r Report) MarshalJSON() ([]byte, error) {
	type bare Report
	out := bare(r)
	if out.Divergences == nil {
		out.Divergences = []Divergence{}
	}
	return jsonscan.Marshal(&out)
}

// String is the verdict in one line. It leaves the score to the JSON: a share of records says little to a person.
func (r *Report) String() string {
	verdict := "FAITHFUL"
	switch {
	case r.Total() > 0:
		verdict = "DIVERGED"
	case r.Doubtful() > 0:
		verdict += ", masked: " + r.doubts()
	}
	if len(r.NotCompared) > 0 { // whatever diverged may come of that
		verdict = "NOT COMPARED"
	}
	switch n := r.Total(); {
	case n == 1:
		verdict += ": 1 divergence"
	case n > 1:
		verdict += fmt.Sprintf(": %d divergences", n)
	}
	if n := len(r.Refused); n > 0 {
		verdict += fmt.Sprintf(", %d refused", n)
	}
	if n := len(r.Unasked); n > 0 {
		if r.names.named() {
			verdict += fmt.Sprintf(", %d that %s alone asked", n, r.names.of(Recorded))
		} else {
			verdict += fmt.Sprintf(", %d never asked for", n)
		}
	}
	counts := r.names.counts(r.RecordedRecords, r.ReplayRecords)
	if r.MCPCalls > 0 {
		counts += ", " + counted(r.MCPCalls, "MCP call") + " compared"
	}
	if r.Screens > 0 {
		counts += ", " + counted(r.Screens, "screen") + " compared"
	}
	return fmt.Sprintf("%s (%s, %s)", verdict, strings.ReplaceAll(r.Mode, "_", "-"), counts)
}

// A Remark is what somebody noted about a record that diverged: an annotation of its tape. It changes no verdict.
type Remark struct {
	Side string `json:"side"` // "recorded" or "replay": whose tape it is a note of
	Seq  uint64 `json:"seq"`
	Text string `json:"text"` // one line
}

// Annotate puts what was noted about the records that diverge beside the divergences: recorded and replay give what the sidecar
// of either tape says of one of its records, in one line each, and may be nil.
func (r *Report) Annotate(recorded, replay func(seq uint64) []string) {
	for i := range r.Divergences {
		d := &r.Divergences[i]
		if d.Seq == nil {
			continue
		}
		if d.Category == MissingInRecorded {
			d.remark("replay", *d.Seq, replay)
			continue
		}
		d.remark("recorded", *d.Seq, recorded)
		if d.ReplaySeq != nil {
			d.remark("replay", *d.ReplaySeq, replay)
		}
	}
}

func (d *Divergence) remark(side string, seq uint64, said func(uint64) []string) {
	if said == nil {
		return
	}
	for _, text := range said(seq) {
		d.Annotations = append(d.Annotations, Remark{side, seq, text})
	}
}

// MaxMaskedPairs is how many masked pairs a Report lists. Further ones are counted.
const MaxMaskedPairs = 1000

// NotMatched is the mask of what is no part of what two requests are matched by: ids that pair calls of tools with their results,
// the boundary of a multipart body, keys that say nothing to a model.
const NotMatched = "not-matched"

// SecretMask is the mask of a placeholder that stands for another secret on the other side.
const SecretMask = "secret"

// A MaskedPair is a place at which two records differ though they compare as equal, since a mask takes out what differs.
type MaskedPair struct {
	Lane      string  `json:"lane,omitempty"`
	Seq       *uint64 `json:"seq,omitempty"` // of the first pair of records that has it
	ReplaySeq *uint64 `json:"replay_seq,omitempty"`
	Place     string  `json:"place"`
	Mask      string  `json:"mask"`
	Recorded  string  `json:"recorded"`
	Replay    string  `json:"replay"`
	Records   int     `json:"records"` // in how many pairs of records it stands
	// Settled says that the pair leaves no doubt: a person wrote the mask, or no run can give the value again.
	Settled bool `json:"settled,omitempty"`
}

// maxMaskedValue bounds a value in a report, in bytes.
const maxMaskedValue = 1000

// maxShownMasked is how many characters of a value a line about a masked pair holds.
const maxShownMasked = 120

// String is the pair in one line.
func (p *MaskedPair) String() string {
	s := fmt.Sprintf("%s %s: %s → %s", p.Mask, p.Place, shownMasked(p.Recorded), shownMasked(p.Replay))
	if p.Lane != "" {
		s = p.Lane + ", " + s
	}
	if p.Records > 1 {
		s += fmt.Sprintf(" (and in %s more)", counted(p.Records-1, "record"))
	}
	return s
}

func shownMasked(s string) string {
	return cmp.Or(visible.Line(clipped(s, maxShownMasked)), "(nothing)")
}

// clipped is a text of so many characters at most.
func clipped(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// Doubtful is how many masked pairs leave the verdict in doubt: it is FAITHFUL, masked, and not FAITHFUL alone.
func (r *Report) Doubtful() int {
	n := r.moreDoubtful
	for i := range r.MaskedPairs {
		if !r.MaskedPairs[i].Settled {
			n++
		}
	}
	return n
}

// Varying is how many places hold another value in every run of the program, as far as Again tells.
func (r *Report) Varying() (n int) {
	for i := range r.MaskedPairs {
		if r.MaskedPairs[i].Mask == Varies {
			n++
		}
	}
	return n
}

// doubts names the masks of the pairs that leave a doubt, with how many each has.
func (r *Report) doubts() string {
	counts := make(map[string]int)
	for i := range r.MaskedPairs {
		if p := &r.MaskedPairs[i]; !p.Settled {
			counts[p.Mask]++
		}
	}
	items := countsOf(counts)
	if r.moreDoubtful > 0 {
		items = append(items, fmt.Sprintf("and %d more", r.moreDoubtful))
	}
	return strings.Join(items, ", ")
}

// countsOf are counts by their names, in order.
func countsOf[K ~string](n map[K]int) (items []string) {
	for _, name := range slices.Sorted(maps.Keys(n)) {
		items = append(items, fmt.Sprintf("%s %d", name, n[name]))
	}
	return items
}

func (r *Report) count(s Side) {
	if s == Recorded {
		r.RecordedRecords++
	} else {
		r.ReplayRecords++
	}
}

// addMissing lists or counts a record that stands on side s alone.
func (r *Report) addMissing(s Side, rec *tape.Record) {
	if r.full() {
		r.Omitted++
		return
	}
	r.add(missing(s, rec, r.names))
}

// SideTraffic is requests of one method, host and path that nothing depends on, and that differ between two runs. They do not gate; a
// strict verdict counts them.
type SideTraffic struct {
	Method   string   `json:"method"`
	Host     string   `json:"host"`
	Path     string   `json:"path"`
	Why      string   `json:"why"`               // SideReports, SideAsked or SideTold
	Recorded int      `json:"recorded"`          // how many were recorded
	Replay   int      `json:"replay"`            // how many the replay sent
	Differ   int      `json:"differ"`            // how many of the replay are like none that was recorded
	Changes  []Change `json:"changes,omitempty"` // of the first that differs and one that was recorded: the first few
}

// Why requests are side traffic; docs/masking.md says what is which.
const (
	SideReports = "reports" // they report what happened in the run, and are acknowledged at most
	SideAsked   = "asked"   // the same question, asked again and again, with the same answer
	SideTold    = "told"    // tapedeck.yaml says so
)

// String says how many there were: POST /v1/events, 3 recorded, 4 on replay.
func (t *SideTraffic) String() string {
	return t.in(sideNames{})
}

func (t *SideTraffic) in(names sideNames) string {
	counts := fmt.Sprintf("%d recorded, %d on replay", t.Recorded, t.Replay)
	if names.named() {
		counts = fmt.Sprintf("%d in %s, %d in %s", t.Recorded, names[Recorded], t.Replay, names[Replay])
	}
	if t.Differ > 0 && t.Recorded == t.Replay {
		counts += fmt.Sprintf(", %d with another content", t.Differ)
	}
	return t.Method + " " + t.Path + ", " + counts
}

// An Op says what happened to a value.
type Op = bodies.Op

// The operations of a Change.
const (
	Changed = bodies.Changed
	Added   = bodies.Added
	Removed = bodies.Removed
	Moved   = bodies.Moved // an element of a list; Was and Now are its old and its new path
	Shown   = bodies.Shown // part of a record that one side has alone: Was as recorded, or Now on the replay
)

// A Change is one difference between two bodies: its path, what stood there and what does, shortened to the words that differ.
type Change = bodies.Change

// DiffJSON returns where two bodies differ. JSON is compared by its structure: of an object plain values first, then lists
// and objects, each by key; elements of a list are aligned, so one inserted message is one Change and one that was moved
// is one too; text is compared word by word. Bodies that mean the same JSON have no change.
//
// Forms, multipart bodies and event streams are compared by their fields, parts and events, any other text line by line.
// Of what is no text the first byte that differs is the only Change.
//
// At most 1000 changes are listed. Time and memory are bounded by the lengths of the bodies; what was compared more coarsely
// for it says so.
func DiffJSON(a, b []byte) []Change { return bodies.Diff(a, b, nil) }

// Summary returns up to limit changes as text, one value a block, and the number of those left out:
//
//	messages[0].content (user)
//	  - "write hello.txt"
//	  + "write bye.txt"
//	tools[3] "rm" added
//	  + {"name":"rm"}
//	and 2 more
//
// A limit below 1 stands for all. The text has no newline at its end and is empty without a change.
func Summary(changes []Change, limit int) string { return bodies.Summary(changes, limit) }

// missing is the divergence of a record that stands on side s alone.
func missing(s Side, rec *tape.Record, names sideNames) Divergence {
	what := describe(rec.Kind)
	d := Divergence{Seq: new(rec.Seq), Category: MissingInReplay, Message: names.alone(s) + ": " + what}
	if s == Replay {
		d.Category, d.Replay, d.ReplaySeq = MissingInRecorded, what, new(rec.Seq)
	} else {
		d.Recorded = what
	}
	return d
}
