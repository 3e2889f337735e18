package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/tapeview"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A survey reads a tape, record by record, for its summary. Its memory is that of an account, and about 200 bytes a record.
type survey struct {
	store cas.Store
	book  *account.Book
	lanes fidelity.SocketLanes

	out     summary
	index   Index
	laneAt  map[string]int
	kindAt  map[string]int
	titles  []string
	starts  map[uint64]int64 // of calls of models, by seq
	changed map[string]int   // where each stands in files, by path
	files   []changedFile
	spawns  []spawn
	servers []server
	odd     bool // a row has not its number as seq
	last    int64
}

func newSurvey(store cas.Store, prices *llm.Prices) *survey {
	book := account.NewBook(store, prices)
	book.Names = true
	return &survey{
		store: store, book: book, laneAt: make(map[string]int), kindAt: make(map[string]int),
		starts: make(map[uint64]int64), changed: make(map[string]int),
		index: Index{Block: blockRows, Lanes: []Lane{}, Kinds: []string{}, Texts: []string{}},
		out:   summary{Rules: rules, Problems: []Problem{}, Conversations: []Conversation{}, Blocks: []int64{}},
	}
}

// summarize reads the tape of a recording. Of one that is damaged it reads what stands before the damage, and says so.
func summarize(rec *recording.Recording, prices *llm.Prices) (*summary, error) {
	size, modified := sizeOf(rec.TapePath()), modifiedAt(rec.TapePath())
	t, err := rec.OpenTape()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s := newSurvey(t.Store, prices)
	for r, err := range t.Records() {
		if err != nil {
			s.problem(rec, fmt.Sprintf("the tape is damaged: %d of %s records can be read: %v", s.out.Rows, saidRecords(rec), err))
			break
		}
		s.add(r, t.Offset())
	}
	if t.Torn() {
		s.problem(rec, "the last line of the tape is torn: it was being written when its recorder ended")
	}
	if parts, err := rec.Parts(); err == nil && len(parts) > 0 && !rec.Finished() {
		s.problem(rec, fmt.Sprintf("%d answers were still streaming when the recorder ended; they are in %s", len(parts), recording.PartName))
	}
	s.out.Tape, s.out.Modified = size, modified
	return s.close(), nil
}

// saidRecords is how many records a recording should have.
func saidRecords(rec *recording.Recording) string {
	if n := rec.Manifest.Records; n > 0 {
		return strconv.Itoa(n)
	}
	return "its"
}

func (s *survey) problem(rec *recording.Recording, what string) {
	s.out.Problems = append(s.out.Problems, Problem{Path: recording.TapeName, What: strings.ReplaceAll(what, rec.Dir+"/", "")})
}

// add adds the next record, whose line begins at an offset.
func (s *survey) add(r *tape.Record, at int64) {
	x, row := &s.index, s.out.Rows
	if row%blockRows == 0 {
		s.out.Blocks = append(s.out.Blocks, at)
	}
	turn := s.book.Add(r)
	start, _ := tape.Spanned(r)
	switch k := r.Kind.(type) {
	case *tape.LLMCall:
		s.starts[r.Seq] = start
	case *tape.ProcessSpawn:
		s.spawns = append(s.spawns, spawnOf(r, k))
	case *tape.MCPOpen:
		s.servers = append(s.servers, server{k.Conversation, r.Seq, strings.Clone(k.Server)})
	}
	if f := tape.ChangedFile(r.Kind); f != nil && !f.IsPlace() {
		s.change(r, f, at)
	}
	s.odd = s.odd || r.Seq != uint64(row)
	x.Seq = append(x.Seq, int64(r.Seq))
	x.Kind = append(x.Kind, placeIn(s.kindAt, &x.Kinds, r.Kind.Name()))
	x.Lane = append(x.Lane, s.lane(r.Kind))
	x.Start, s.last = append(x.Start, start-s.last), start
	x.Took = append(x.Took, tape.TookMS(r.Kind))
	size := sizeOfPayloads(r.Kind)
	x.Size, s.out.Payloads = append(x.Size, size), s.out.Payloads+size
	x.Flag = append(x.Flag, s.flags(r.Kind))
	s.titles = append(s.titles, titled(tapeview.Title(r.Kind, turn, s.store)))
	s.out.Rows++
}

// change takes a record that says that a file changed.
func (s *survey) change(r *tape.Record, f *tape.File, at int64) {
	i, ok := s.changed[f.Path]
	if !ok {
		i = len(s.files)
		path := strings.Clone(f.Path)
		s.changed[path] = i
		s.files = append(s.files, changedFile{path: path, before: sizeIn(f.Before, FileGone)})
	}
	size := sizeIn(f.Content, FileBytes)
	if _, gone := r.Kind.(*tape.FileDelete); gone {
		size = FileGone
	}
	row := &s.files[i]
	row.at, row.size, row.where = append(row.at, r.MonotonicMS), append(row.size, size), append(row.where, at)
}

// sizeIn is how long a payload is, or what stands for none.
func sizeIn(p *tape.Payload, none int64) int64 {
	if p == nil {
		return none
	}
	return p.Len
}

// The bits of Index.Flag.
const (
	flagFailed = 1
	flagSide   = 8
)

func (s *survey) flags(k tape.Kind) (bits int) {
	if refusedNetwork(k) {
		s.out.Refused++
	}
	if follow.Failed(k) {
		bits |= flagFailed
	}
	if x := tape.ExchangeOf(k); x != nil && strings.HasPrefix(x.Lane, tape.TelemetryLane) {
		bits |= flagSide
	}
	return bits
}

// refusedNetwork reports whether a program was refused something of the network. Sockets of this host are tried by every C library.
func refusedNetwork(k tape.Kind) bool {
	switch k := k.(type) {
	case *tape.NetRefused:
		return !strings.HasPrefix(k.Addr, "/")
	case *tape.TLSRefused:
		return true
	}
	return false
}

// placeIn returns where a name stands in a list, which gets it where it has it not yet.
func placeIn(at map[string]int, list *[]string, name string) int {
	i, ok := at[name]
	if !ok {
		i = len(*list)
		name = strings.Clone(name)
		at[name] = i
		*list = append(*list, name)
	}
	return i
}

// maxLanes bounds how many lanes are told apart; the others are one.
const maxLanes = 2000

func (s *survey) lane(k tape.Kind) int {
	name := s.lanes.Of(k)
	i, ok := s.laneAt[name]
	if !ok && len(s.index.Lanes) >= maxLanes {
		name = "others"
		i, ok = s.laneAt[name]
	}
	if !ok {
		i, name = len(s.index.Lanes), strings.Clone(name)
		s.laneAt[name] = i
		s.index.Lanes = append(s.index.Lanes, Lane{Name: name, Group: groupOf(k), Title: laneTitle(name)})
	}
	return i
}

// groupOf says which part of the timeline a lane belongs to that begins with k.
func groupOf(k tape.Kind) string {
	switch k.(type) {
	case *tape.LLMCall:
		return "model"
	case *tape.MCPOpen, *tape.MCPJSONRPC, *tape.MCPText, *tape.MCPClose:
		return "tool"
	case *tape.HTTPExchange, *tape.WSOpen, *tape.WSMessage, *tape.WSClose:
		return "http"
	case *tape.ProcessSpawn:
		return "process"
	case *tape.FileRead, *tape.FileWrite, *tape.FileDelete, *tape.FileStat, *tape.DirList:
		return "file"
	case *tape.TLSRefused, *tape.NetRefused, *tape.NameLookup:
		return "network"
	case *tape.ClockRead, *tape.ClockSleep:
		return "clock"
	}
	return "other"
}

// laneTitle is the name of a lane without what says of which kind it is.
func laneTitle(name string) string {
	for _, kind := range []string{"mcp:", "http:", "process:", "ws:"} {
		if rest, ok := strings.CutPrefix(name, kind); ok && rest != "" {
			return rest
		}
	}
	return name
}

func sizeOfPayloads(k tape.Kind) (n int64) {
	for _, p := range tape.Payloads(k) {
		n += p.Len
	}
	return n
}

// maxTitle bounds a title, in characters.
const maxTitle = 240

func titled(s string) string {
	if utf8.RuneCountInString(s) > maxTitle {
		s = string([]rune(s)[:maxTitle-1]) + "…"
	}
	return strings.ToValidUTF8(strings.Clone(s), "\uFFFD")
}

// close returns what is known by now. More records may follow.
func (s *survey) close() *summary {
	out, x := s.out, s.index
	x.Rows, out.Files = out.Rows, len(s.files)
	if s.odd {
		out.Seqs = slices.Clone(x.Seq)
	} else {
		x.Seq = []int64{}
	}
	x.Lanes, x.Turn = slices.Clone(x.Lanes), make([]int, x.Rows)
	named := s.conversations(s.book.Close(), &out, &x)
	out.changes, out.index = s.packChanges(named), s.pack(&x)
	return &out
}

func (s *survey) packChanges(named []naming) []byte {
	c, last := changes{Spawns: columnsOf(s.spawns), Servers: s.servers, Named: named}, int64(0)
	for i := range s.files {
		c.add(&s.files[i])
		for _, where := range s.files[i].where {
			c.Where, last = append(c.Where, where-last), where
		}
	}
	return packed(jsonscan.MustMarshal(&c))
}

// conversations makes rows of the turns, and names their lanes by what began them.
func (s *survey) conversations(a *account.Account, out *summary, x *Index) (named []naming) {
	var main []TurnRow
	for _, c := range a.Conversations {
		rows := Conversation{Lane: c.Lane, Title: c.Turns[0].Prompt, Turns: make([]TurnRow, 0, len(c.Turns))}
		for i := range c.Turns {
			t := s.turnRow(&c.Turns[i])
			rows.Turns = append(rows.Turns, t)
			for j, call := range c.Turns[i].Tools {
				if names := c.Turns[i].Named[j]; len(names) > 0 {
					named = append(named, naming{t.Seq, call.Name, names})
				}
			}
		}
		if len(rows.Turns) > len(main) {
			main = rows.Turns
		}
		if i, ok := s.laneAt[c.Lane]; ok && rows.Title != "" {
			x.Lanes[i].Title = rows.Title
		}
		out.Conversations = append(out.Conversations, rows)
	}
	slices.SortStableFunc(named, func(a, b naming) int { return cmp.Compare(a.Seq, b.Seq) })
	s.numbers(out, x, main)
	return named
}

// numbers says of each record which turn it belongs to: a call of a model to its own, any other to the last of the main conversation, which
// is that with the most turns.
func (s *survey) numbers(out *summary, x *Index, main []TurnRow) {
	isMain := make(map[uint64]bool, len(main))
	for i := range main {
		isMain[main[i].Seq] = true
	}
	numbers := make(map[uint64]int)
	for i := range out.Conversations {
		for _, t := range out.Conversations[i].Turns {
			numbers[t.Seq] = t.Number
		}
	}
	now, model := 0, slices.Index(x.Kinds, "llm_call")
	for row := range x.Turn {
		if x.Turn[row] = now; x.Kind[row] != model {
			continue
		}
		seq := uint64(s.index.Seq[row])
		if x.Turn[row] = numbers[seq]; isMain[seq] {
			now = numbers[seq]
		}
	}
}

func (s *survey) turnRow(t *account.Turn) TurnRow {
	out := TurnRow{
		Seq: t.Seq, Number: t.Number, Model: t.Model, Prompt: t.Prompt, Answer: t.Answer, Tools: []string{},
		Start: s.starts[t.Seq], Latency: t.LatencyMS, Cost: t.CostUSD, Error: t.Error,
	}
	for _, call := range t.Tools {
		out.Tools = append(out.Tools, call.Name)
	}
	if u := t.Usage; u != nil {
		out.Input, out.Cached, out.Output = u.InputTokens, u.CacheReadTokens, u.OutputTokens
	}
	return out
}

// maxIndex bounds an index, in compressed bytes, where titles make it longer: they are cut until it fits.
const maxIndex = 450_000

// pack compresses an index, with titles as long as it may have them.
func (s *survey) pack(x *Index) (b []byte) {
	for _, width := range []int{maxTitle, 60, 30, 12, 0} {
		at := make(map[string]int)
		x.Texts, x.Title = []string{}, make([]int, 0, len(s.titles))
		for _, title := range s.titles {
			x.Title = append(x.Title, placeIn(at, &x.Texts, cutTo(title, width)))
		}
		if b = packed(jsonscan.MustMarshal(x)); len(b) <= maxIndex {
			break
		}
	}
	return b
}

func cutTo(s string, width int) string {
	if n := 0; len(s) > width {
		for i := range s {
			if n++; n > width {
				return strings.TrimSpace(s[:i]) + "…"
			}
		}
	}
	return s
}
