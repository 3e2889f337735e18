// Package account says what a recording comes to: the turns of its conversations with models, the tools that these asked for, the files
// that the run left changed, processes, tokens, cost, time. It is derived from one pass over the tape.
//
// A turn is an answer of a model, counted in its conversation (a lane of the tape) in the order in which requests arrived: turn N is the
// N-th that was answered. An attempt that nobody answered stands before the answer that it was made for, with the same number. Calls
// of models that are no conversation, such as embeddings, are tokens and cost alone; what a tool server asked is not the program's.
//
// Of texts the first words are kept and a digest of the whole, so that memory grows with the number of turns, not with what is said in
// them. Costs are those of package llm: what is not known is not 0.
//
// Not goals: judging, and what was said in full (package derive).
package account

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An Account is what a recording comes to.
type Account struct {
	Conversations []*Conversation // by their first requests
	Files         map[string]File // of the work tree that the run changed, as it left them, by path
	Exit          *recording.Exit // of the program; nil where it is not known
	Total         recording.Totals
}

// A File is how a run left a file. The zero File is one that it deleted.
type File struct {
	Digest cas.Digest
	Mode   string // octal, with the type
}

// Of reads the tape of a recording. nil prices are those that are built in.
func Of(rec *recording.Recording, prices *llm.Prices) (*Account, error) {
	a, err := OfTape(rec.TapePath(), prices)
	if err == nil && rec.Manifest.Exit != nil {
		a.Exit = rec.Manifest.Exit
	}
	return a, err
}

// OfTape is Of for a bare tape.
func OfTape(path string, prices *llm.Prices) (*Account, error) {
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := NewBook(f.Store, prices)
	for rec, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		b.Add(rec)
	}
	return b.Close(), nil
}

// From are the turns that came no earlier than that of a lane with a number; where there is none, than the record seq.
func (a *Account) From(lane string, number int, seq uint64) (turns []*Turn) {
	from := func(t *Turn) bool { return t.Seq >= seq }
	for _, c := range a.Conversations {
		if i := slices.IndexFunc(c.Turns, func(t Turn) bool { return t.Number == number }); i >= 0 && c.Lane == lane {
			from = func(t *Turn) bool { return t.arrival >= c.Turns[i].arrival }
		}
	}
	for _, c := range a.Conversations {
		for i := range c.Turns {
			if from(&c.Turns[i]) {
				turns = append(turns, &c.Turns[i])
			}
		}
	}
	return turns
}

// TotalOf returns the totals that a recording keeps, or adds them up where it keeps none.
func TotalOf(rec *recording.Recording) (*recording.Totals, error) {
	if rec.Manifest.Totals != nil {
		return rec.Manifest.Totals, nil
	}
	a, err := Of(rec, nil)
	if err != nil {
		return nil, err
	}
	return &a.Total, nil
}

// A Book is an account that is being added up, for who reads the tape anyway.
type Book struct {
	// Said, unless nil, is told each text that is new in a conversation, whole: prompts, answers, arguments and results of tools.
	Said func(text string)
	// Read, unless nil, is told what each call says that could be read, before Add returns.
	Read func(*llm.Said)
	// Names has Turn.Named filled.
	Names bool

	account Account
	store   cas.Store
	bill    *llm.Bill
	lanes   map[string]*lane
	heard   []*lane // that have a listener, the one that was used last at the end
	kept    int     // turns
	spawns  int     // the program too
	program bool    // Total.DurationMS is the program's
}

// NewBook begins an account of a tape whose payloads are in store.
func NewBook(store cas.Store, prices *llm.Prices) *Book {
	b := &Book{store: store, bill: llm.NewBill(prices), lanes: make(map[string]*lane)}
	b.account.Files, b.account.Total.Models = make(map[string]File), []string{}
	return b
}

// Add adds the next record. Of a call of a model it returns what is known of it so far, without its number; nil of any other record, and
// where nothing is known.
func (b *Book) Add(rec *tape.Record) (turn *Turn) {
	total := &b.account.Total
	if !b.program {
		total.DurationMS = max(total.DurationMS, rec.MonotonicMS)
	}
	if f := tape.ChangedFile(rec.Kind); f != nil && files.InTree(f) && !f.IsPlace() {
		b.account.Files[strings.Clone(f.Path)] = File{f.ContentHash, strings.Clone(f.Mode)}
	}
	switch k := rec.Kind.(type) {
	case *tape.LLMCall:
		if tape.OriginOf(k) == 0 {
			turn = b.call(rec.Seq, k)
		}
	case *tape.FileDelete:
		if files.InTree(&k.File) {
			b.account.Files[strings.Clone(k.Path)] = File{}
		}
	case *tape.ProcessSpawn: // the last one is the program
		b.spawns++
		total.DurationMS, b.program = k.DurationMS, true
		b.account.Exit = &recording.Exit{Code: k.ExitCode, Signal: strings.Clone(k.Signal)}
	}
	return turn
}

// Close returns the account. The book is then done with.
func (b *Book) Close() *Account {
	a, t := &b.account, &b.account.Total
	a.Conversations = b.conversations()
	t.Spawns, t.Files = max(b.spawns-1, 0), len(a.Files)
	t.InputTokens, t.OutputTokens, t.CachedTokens = b.bill.Usage.InputTokens, b.bill.Usage.OutputTokens, b.bill.Usage.CacheReadTokens
	t.Uncounted, t.PricedUSD, t.PricesAsOf = b.bill.Calls-b.bill.Counted, b.bill.USD, b.bill.AsOf()
	t.Unpriced = append([]string{}, b.bill.Unpriced...)
	if usd, known := b.bill.Whole(); known {
		t.CostUSD = &usd
	}
	return a
}

// What Texts gives.
const (
	TextCommand = "command"      // the command line of the run
	TextSaid    = "conversation" // a prompt, an answer, the arguments or the result of a tool
	TextFile    = "file"         // the name of a file that was read or changed, each once
	TextOutput  = "output"       // what a process that the run started printed, and what it printed itself
)

// Texts gives what people look for in a recording, until f says false. Output of more than maxOutput bytes is left out.
func Texts(rec *recording.Recording, f func(what, text string) bool) error {
	if !f(TextCommand, strings.Join(rec.Manifest.Argv, " ")) {
		return nil
	}
	from, err := rec.OpenTape()
	if err != nil {
		return err
	}
	defer from.Close()
	more, files := true, make(map[string]bool)
	tell := func(what, text string) { more = more && (text == "" || f(what, text)) }
	b := NewBook(from.Store, (*llm.Prices)(nil))
	b.Said = func(text string) { tell(TextSaid, text) }
	for r, err := range from.Records() {
		if err != nil || !more {
			return err
		}
		b.Add(r)
		if file := tape.FileOf(r.Kind); file != nil && !files[file.Path] {
			files[file.Path] = true
			tell(TextFile, file.Path)
		}
		if p, ok := r.Kind.(*tape.ProcessSpawn); ok {
			tell(TextOutput, printed(from, p.Stdout))
			tell(TextOutput, printed(from, p.Stderr))
		}
	}
	return nil
}

// maxOutput bounds what is read of the output of one process, in bytes.
const maxOutput = 1 << 20

// printed is a stream as text; "" where there is none, or it cannot be read.
func printed(from *tape.Tape, p *tape.Payload) string {
	if p == nil || p.Len > maxOutput {
		return ""
	}
	b, err := p.Bytes(from.Store)
	if err != nil {
		return ""
	}
	return string(b)
}
