// Package fork says where a run leaves its recording, and what is changed there.
//
// A Tape is the model calls of a recording, by conversation: a Point is found in it by the turn of a conversation or by the seq of a
// record. A turn is one answer of the model; a call that failed and was tried again is of the turn of that answer.
//
// A Document is what can be changed at a point, as people edit it: the recorded answer of its turn, the system text and what tools gave, as
// far as they stand in the request of that turn. What differs in an edited one are Changes: the answer is given to the program in the place
// of the model's (Made), the rest stands in each request that leaves from there on (Changes.Of).
//
// Not goals: running a program (package deck), wires of providers (package llm).
package fork

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Tape is what a recording asked for, in the order in which it did.
type Tape struct {
	exchanges []*Exchange
	refused   []refusal
}

// A refusal is of what nothing on a tape answered.
type refusal struct {
	seq  uint64 // of its record
	what string // method and URL, or method and tool server
}

// Anew lists what a fork of t refused, whose tape is now and which left t at the record from, that t had not refused before that.
func (t *Tape) Anew(now *Tape, from uint64) (out []string) {
	before := make(map[string]int)
	for _, r := range t.refused {
		if r.seq < from {
			before[r.what]++
		}
	}
	for _, r := range now.refused {
		if before[r.what]--; before[r.what] < 0 {
			out = append(out, r.what)
		}
	}
	return out
}

// An Exchange is one request. Turn is of a call of a model alone: which answer of its conversation it asked for, from 1.
type Exchange struct {
	Seq, Arrival uint64
	Turn         int
	Lane         string
	Call         *tape.LLMCall // nil for none

	began, kept uint64 // the recorder's ordinals of its answer's begin and of its record
}

// Read reads a tape. The error is one that records gave.
func Read(records iter.Seq2[*tape.Record, error]) (*Tape, error) {
	t := new(Tape)
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if k, ok := rec.Kind.(*tape.MCPJSONRPC); ok && strings.HasPrefix(k.Error, mcp.RefusedAs) {
			t.refused = append(t.refused, refusal{rec.Seq, strings.Clone(k.Method + " of mcp:" + tape.MCPServer(k.Server))})
		}
		x := tape.ExchangeOf(rec.Kind)
		if x == nil || tape.OriginOf(rec.Kind) != 0 {
			continue
		}
		if x.Lane == exchange.Unmatched {
			t.refused = append(t.refused, refusal{rec.Seq, strings.Clone(x.Method + " " + x.URL)})
			continue
		}
		if strings.HasPrefix(x.Lane, "mcp:") {
			continue // only what else the program asks for takes it past a point
		}
		e := &Exchange{Seq: rec.Seq, Arrival: x.Arrival, Lane: strings.Clone(x.Lane), began: rec.G, kept: rec.G}
		if len(x.Stream) > 0 {
			e.began = x.Stream[0].G
		}
		e.Call, _ = rec.Kind.(*tape.LLMCall)
		t.exchanges = append(t.exchanges, e)
	}
	slices.SortStableFunc(t.exchanges, func(a, b *Exchange) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Seq, b.Seq))
	})
	t.number()
	return t, nil
}

// AnsweredBy says which option has a refused request answered in a fork of the recording of m; "" where it is of none of its tool servers.
func AnsweredBy(refused string, m *recording.Manifest) string {
	_, server, _ := strings.Cut(refused, " of mcp:")
	if m.MCP == nil || !slices.Contains(m.MCP.Servers, server) {
		return ""
	}
	return fmt.Sprintf("--mcp %s has it answer itself", server)
}

// number numbers the turns.
func (t *Tape) number() {
	turns := make(map[string]int)
	for _, e := range t.exchanges {
		if e.Call != nil {
			e.Turn = turns[e.Lane] + 1
			if account.FailureOf(e.Call) == "" {
				turns[e.Lane]++
			}
		}
	}
}

// answered is the call that was answered in the turn of e; that of e where none was.
func (t *Tape) answered(e *Exchange) *tape.LLMCall {
	for _, x := range t.exchanges {
		if x.Call != nil && x.Lane == e.Lane && x.Turn == e.Turn && account.FailureOf(x.Call) == "" {
			return x.Call
		}
	}
	return e.Call
}

// Hosts are those that models were asked at, in order.
func (t *Tape) Hosts() (hosts []string) {
	for _, e := range t.exchanges {
		if e.Call != nil && !slices.Contains(hosts, tape.HostOf(e.Call.URL)) {
			hosts = append(hosts, tape.HostOf(e.Call.URL))
		}
	}
	return hosts
}

// A Point is where a run leaves a recording.
type Point struct {
	Seq    uint64    `json:"seq"`        // of the first record that is not from the tape
	Lane   string    `json:"lane"`       // of First
	Turn   int       `json:"turn"`       // of First, where it is a call of a model; 0 else
	First  *Exchange `json:"-"`          // the first request that is not answered from the tape
	Before int       `json:"tape_calls"` // calls of models that are
}

// A Place says which Point is meant: Turn of Lane, or Seq where Turn is 0.
type Place struct {
	Turn int
	Lane string // "" is the only conversation with so many turns; else its name or a part of it that is its own
	Seq  uint64
}

// Find finds a point. records are those of the tape. The error says what there is instead.
func (t *Tape) Find(p Place, records iter.Seq2[*tape.Record, error]) (*Point, error) {
	if p.Turn == 0 {
		return t.bySeq(p.Seq, records)
	}
	lane, err := t.lane(p)
	if err != nil {
		return nil, err
	}
	for _, e := range t.exchanges {
		if e.Call != nil && e.Lane == lane && e.Turn == p.Turn {
			return t.at(e, e.Seq), nil
		}
	}
	panic("fork: a turn that was counted is not there")
}

func (t *Tape) at(e *Exchange, seq uint64) *Point {
	p := &Point{Seq: seq, First: e, Lane: e.Lane, Turn: e.Turn}
	for _, x := range t.exchanges {
		if x.Call != nil && x.Arrival < e.Arrival {
			p.Before++
		}
	}
	return p
}

// bySeq finds the point of a record: an exchange, or what came after one of another kind.
func (t *Tape) bySeq(seq uint64, records iter.Seq2[*tape.Record, error]) (*Point, error) {
	for _, e := range t.exchanges {
		if e.Seq == seq {
			return t.at(e, seq), nil
		}
	}
	last := uint64(0)
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if last = rec.Seq; last != seq {
			continue
		}
		var first *Exchange
		for _, e := range t.exchanges { // by arrival
			if e.kept > rec.G && e.began > rec.G {
				first = e
				break
			}
		}
		if first == nil {
			return nil, fmt.Errorf("--from %d: nothing was asked for after it, so there is nothing that could go live (tapedeck replay runs to the end)", seq)
		}
		return t.at(first, seq), nil
	}
	return nil, fmt.Errorf("--from %d: the recording has no such record: its last one is %d", seq, last)
}

// lane is the conversation that a place names.
func (t *Tape) lane(p Place) (string, error) {
	var names, fit []string
	turns := make(map[string]int)
	for _, e := range t.exchanges {
		if e.Call != nil {
			if turns[e.Lane] == 0 {
				names = append(names, e.Lane)
			}
			turns[e.Lane] = e.Turn
		}
	}
	for _, name := range names {
		if p.Lane == name {
			fit = []string{name}
			break
		}
		if strings.Contains(name, p.Lane) && (p.Lane != "" || turns[name] >= p.Turn) {
			fit = append(fit, name)
		}
	}
	switch {
	case len(names) == 0:
		return "", fmt.Errorf("--from turn:%d: the recording holds no call of a model", p.Turn)
	case len(fit) == 1 && turns[fit[0]] >= p.Turn:
		return fit[0], nil
	}
	why := "several conversations have so many turns: name one with --lane"
	if len(fit) == 1 {
		why = "the conversation has fewer turns"
	} else if len(fit) == 0 {
		why = "no conversation has so many turns"
		if p.Lane != "" {
			why = fmt.Sprintf("there is no conversation %q", p.Lane)
		}
	}
	return "", fmt.Errorf("--from turn:%d: %s; there %s: `tapedeck show REC` has what is said in each", p.Turn, why, listed(names, turns))
}

// maxListed is how many conversations an error lists.
const maxListed = 12

func listed(names []string, turns map[string]int) string {
	var out []string
	for _, name := range names[:min(len(names), maxListed)] {
		out = append(out, fmt.Sprintf("%s (%d)", name, turns[name]))
	}
	if len(names) > maxListed {
		out = append(out, fmt.Sprintf("%d more", len(names)-maxListed))
	}
	verb := "are "
	if len(names) == 1 {
		verb = "is "
	}
	return verb + strings.Join(out, ", ")
}

// A Plan is where a recording is left, and what can be changed there.
type Plan struct {
	*Point
	*Tape
	Document *Document // nil where the point is no call of a model that can be read
	Usage    llm.Usage // of the recorded answer
	Unread   error     // why there is no Document; nil where there is one

	Store cas.Store // of the recording
}

// PlanOf reads a recording and finds a point in it.
func PlanOf(rec *recording.Recording, place Place) (*Plan, error) {
	f, err := rec.OpenTape()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := new(Plan)
	if p.Tape, err = Read(f.Records()); err != nil {
		return nil, err
	}
	if p.Point, err = p.Find(place, rec.Records()); err != nil {
		return nil, err
	}
	if p.Store, err = rec.Store(); err != nil {
		return nil, err
	}
	if p.First.Call == nil {
		p.Unread = fmt.Errorf("record %d is no call of a model", p.Seq)
		return p, nil
	}
	if p.First.Call.Connection != 0 {
		return nil, fmt.Errorf("turn %d was asked for over a WebSocket, which cannot be left in its middle: record the program with HTTP", p.Turn)
	}
	call := p.answered(p.First) // the first may be an attempt that failed
	p.Usage, _ = llm.UsageOf(call)
	p.Document, p.Unread = DocumentOf(call, p.Store)
	return p, nil
}

// Changes are those of assignments PATH=VALUE, on top of a document that was edited; nil for none.
func (p *Plan) Changes(edited *Document, assignments []string) (*Changes, error) {
	if edited == nil && len(assignments) == 0 {
		return new(Changes), nil
	}
	if p.Document == nil {
		return nil, fmt.Errorf("nothing can be edited there: %w", p.Unread)
	}
	if edited == nil {
		edited = p.Document.clone()
	}
	for _, a := range assignments {
		if err := edited.Set(a); err != nil {
			return nil, err
		}
	}
	c := p.Document.Changes(edited)
	if c.Answer != nil && !llm.Speaks(p.First.Call) {
		return nil, fmt.Errorf("an answer of %s %s cannot be written here: change what leaves in its place", p.First.Call.Provider, p.First.Call.Endpoint)
	}
	return c, nil
}

// A Turn is one answer of a model in a few words.
type Turn struct {
	Turn         int      `json:"turn"`
	Seq          uint64   `json:"seq"`
	Model        string   `json:"model"` // that was asked
	Answer       string   `json:"answer"`
	ToolCalls    []string `json:"tool_calls"` // each its name, and its arguments as JSON
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"` // null where it is not known
	LatencyMS    int64    `json:"latency_ms"`
	Error        string   `json:"error"`
}

// TurnsOf are those of a conversation of the tape at path, from a turn on.
func TurnsOf(path, lane string, from int) ([]Turn, error) {
	a, err := account.OfTape(path, nil)
	if err != nil {
		return nil, err
	}
	turns := []Turn{}
	for _, c := range a.Conversations {
		if c.Lane != lane {
			continue
		}
		for _, t := range c.Steps() {
			if t.Number >= from {
				turns = append(turns, turnOf(t))
			}
		}
	}
	return turns, nil
}

func turnOf(t *account.Turn) Turn {
	out := Turn{
		Turn: t.Number, Seq: t.Seq, Model: t.Model, Answer: t.Answer, ToolCalls: []string{},
		CostUSD: t.CostUSD, LatencyMS: t.LatencyMS, Error: t.Error,
	}
	if t.Usage != nil {
		out.InputTokens, out.OutputTokens = t.Usage.InputTokens, t.Usage.OutputTokens
	}
	for _, c := range t.Tools {
		out.ToolCalls = append(out.ToolCalls, c.Name+" "+c.Arguments)
	}
	return out
}

// words are what was answered in a line, and what it took.
func (t *Turn) words() (words, tokens string) {
	parts := slices.Clone(t.ToolCalls)
	if t.Answer != "" {
		parts = append(parts, strings.Join(strings.Fields(t.Answer), " "))
	}
	if t.Error != "" {
		parts = append(parts, t.Error)
	}
	return strings.Join(parts, ", "), fmt.Sprintf(" %d+%d", t.InputTokens, t.OutputTokens)
}

// maxRows is how many turns WriteTurns writes.
const maxRows = 20

// WriteTurns writes the turns of two runs side by side, in lines of a width: what was recorded, and the fork. A turn is its tool calls and
// the first words of its answer, with the tokens in and out.
func WriteTurns(w io.Writer, turns [2][]Turn, width int) error {
	n := max(len(turns[0]), len(turns[1]))
	if n == 0 {
		return nil
	}
	cell := max((width-8)/2, 20)
	row := func(name, recorded, forked string) error {
		_, err := visible.Fprintf(w, "%-6s%-*s  %s\n", name, cell, recorded, forked)
		return err
	}
	err := row("turn", cut("recorded "+modelsOf(turns[0]), cell), cut("fork "+modelsOf(turns[1]), cell))
	for i := range min(n, maxRows) {
		words, tokens, number := [2]string{"-", "-"}, [2]string{}, 0
		for side := range turns {
			if i < len(turns[side]) {
				words[side], tokens[side] = turns[side][i].words()
				number = turns[side][i].Turn
			}
		}
		words = fromDifference(words, cell-max(len(tokens[0]), len(tokens[1])))
		var cells [2]string
		for side := range cells {
			cells[side] = cut(words[side], cell-len(tokens[side])) + tokens[side]
		}
		err = errors.Join(err, row(strconv.Itoa(number), cells[0], cells[1]))
	}
	if n > maxRows {
		err = errors.Join(err, row("…", fmt.Sprintf("%d turns", len(turns[0])), fmt.Sprintf("%d turns", len(turns[1]))))
	}
	return err
}

// modelsOf are the models that turns asked.
func modelsOf(turns []Turn) string {
	var models []string
	for i := range turns {
		if !slices.Contains(models, turns[i].Model) {
			models = append(models, turns[i].Model)
		}
	}
	return strings.Join(models, ", ")
}

// fromDifference are two texts without most of what both begin with, where they differ only beyond n runes.
func fromDifference(texts [2]string, n int) [2]string {
	a, b := []rune(texts[0]), []rune(texts[1])
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	if from := same - n/3; same >= n-1 && texts[0] != texts[1] {
		return [2]string{"…" + string(a[from:]), "…" + string(b[from:])}
	}
	return texts
}

// cut is the beginning of a text, n runes at most.
func cut(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:max(n, 1)-1]) + "…"
}
