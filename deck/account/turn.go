package account

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Conversation is what was said with models in one lane.
type Conversation struct {
	Lane  string
	Turns []Turn // by arrival, attempts that failed among them
}

// A Turn is one call of a model.
type Turn struct {
	Seq     uint64     // of its record
	Number  int        // which answer of its conversation it asked for, from 1
	Model   string     // that answered, or was asked for where the answer names none
	Asked   cas.Digest // of all that the program asked, without what is volatile (the tape's request_digest)
	Changed []string   // what of that a fork put another one in the place of: "system", "tool ID"
	Params  cas.Digest // of what else may change the answer, such as the temperature
	Said    cas.Digest // of the answer's text and calls of tools, without their ids; zero where nothing was said
	Prompt  string     // the first words of what the user's side said new, or of what a tool gave
	Answer  string     // the first words of the answer
	Tools   []ToolCall // that the answer asks for
	Named   [][]string // of each of Tools the files, without directories, that its arguments seem to name; nil without Book.Names

	Usage     *llm.Usage // nil where the answer does not say
	CostUSD   *float64   // nil where it is not known
	LatencyMS int64      // until the end of the answer
	Error     string     // why there is no answer, or no whole one; "" where there is

	arrival uint64
}

// A ToolCall is a tool that a model asked for.
type ToolCall struct {
	Name      string
	Arguments string     // their first words, as JSON
	Digest    cas.Digest // of all of the arguments, as canonical JSON
}

// Answered reports whether a model answered.
func (t *Turn) Answered() bool { return t.Error == "" }

// Steps are the turns of a conversation by number: of each the one that was answered, or else the last that was tried.
func (c *Conversation) Steps() (steps []*Turn) {
	for i := range c.Turns {
		t := &c.Turns[i]
		if n := len(steps); n > 0 && steps[n-1].Number == t.Number {
			steps = steps[:n-1]
		}
		steps = append(steps, t)
	}
	return steps
}

// Bounds of what is kept of one tape, and of one turn in bytes or pieces.
const (
	maxWords     = 120
	maxTools     = 100
	maxTurns     = 20_000
	maxListeners = 16
	maxModels    = 20
)

// A lane is a conversation that is being read.
type lane struct {
	Conversation
	listener *llm.Listener // nil where it was taken away: the next request is then read as a whole
}

// call takes a call of a model.
func (b *Book) call(seq uint64, k *tape.LLMCall) *Turn {
	if k.Lane == exchange.Unmatched {
		return nil
	}
	t := Turn{
		Seq: seq, Asked: k.RequestDigest, Params: k.ParamsDigest, arrival: k.Arrival, Error: FailureOf(k),
	}
	_, model := llm.ModelOf(k)
	t.Model = strings.Clone(model)
	if n := len(k.Stream); n > 0 {
		t.LatencyMS = k.Stream[n-1].TMS
	}
	l := b.lanes[k.Lane]
	if l == nil {
		l = &lane{Conversation: Conversation{Lane: strings.Clone(k.Lane)}}
	}
	said, err := b.read(l, k)
	if said != nil && said.Answer != nil {
		t.Model = strings.Clone(llm.AnsweredBy(t.Model, said.Answer.Model))
	}
	t.sent(k)
	b.count(&t, k)
	if errors.Is(err, llm.ErrNoTalk) {
		return &t
	}
	if t.tell(said, b.Names); t.Said.IsZero() && t.Answered() && k.Response != nil {
		t.Said = k.Response.Hash // it cannot be read: its bytes tell it from others
	}
	if b.Said != nil && said != nil {
		eachText(said, b.Said)
	}
	if b.Read != nil && said != nil {
		b.Read(said)
	}
	if t.Answered() {
		b.account.Total.Turns++
		b.account.Total.Tools += len(t.Tools)
	} else {
		b.account.Total.Failed++
	}
	if b.kept++; b.kept <= maxTurns {
		t.Tools = t.Tools[:min(len(t.Tools), maxTools)]
		l.Turns = append(l.Turns, t)
		b.lanes[l.Lane] = l
	}
	return &t
}

// sent notes what of the request a fork changed before it left.
func (t *Turn) sent(k *tape.LLMCall) {
	s := tape.SentOf(k)
	if s == nil {
		return
	}
	t.Model = cmp.Or(s.Model, t.Model)
	t.Changed = slices.DeleteFunc(s.Changed, func(what string) bool { return what == "model" })
}

// FailureOf says why a call got no answer, or no whole one; "" where it did.
func FailureOf(k *tape.LLMCall) string {
	switch {
	case k.Error != "":
		return strings.Clone(k.Error)
	case k.Method == "", k.Status >= 200 && k.Status < 300, k.Status == http.StatusSwitchingProtocols:
		return "" // a tape of another producer holds answers alone
	case k.Status == 0:
		return "no answer"
	}
	return fmt.Sprintf("status %d", k.Status)
}

// count puts a call on the bill. One that no model answered costs nothing.
func (b *Book) count(t *Turn, k *tape.LLMCall) {
	if all := &b.account.Total.Models; t.Model != "" && len(*all) < maxModels && !slices.Contains(*all, t.Model) {
		*all = append(*all, t.Model)
	}
	usage, said := llm.UsageOf(k)
	if said {
		t.Usage = &usage
	}
	if !said && !t.Answered() && k.Status != http.StatusOK && k.Status != http.StatusSwitchingProtocols {
		return
	}
	was, priced := b.bill.USD, b.bill.Priced
	if _, asked := llm.ModelOf(k); asked != t.Model {
		call := *k
		call.Model = t.Model
		k = &call
	}
	if b.bill.Add(k); b.bill.Priced > priced {
		usd := b.bill.USD - was
		t.CostUSD = &usd
	}
}

// read reads what a call says. An error other than llm.ErrNoTalk says that it cannot be read.
func (b *Book) read(l *lane, k *tape.LLMCall) (*llm.Said, error) {
	request, response, err := Bodies(k, b.store)
	if err != nil {
		return nil, err
	}
	return b.listen(l).Read(k, request, response)
}

// Bodies are those of a call whose payloads are in store. The response is nil where there was none; the error says of a body that it was not
// kept, or is too long to be read.
func Bodies(k *tape.LLMCall, store cas.Store) (request, response []byte, err error) {
	if request, err = Body(k.RequestPayload, store); err != nil {
		return nil, nil, fmt.Errorf("its request: %w", err)
	}
	if k.Response == nil {
		return request, nil, nil
	}
	if response, err = Body(k.Response, store); err != nil {
		return nil, nil, fmt.Errorf("its answer: %w", err)
	}
	return request, response, nil
}

// Body is one of them.
func Body(p *tape.Payload, store cas.Store) ([]byte, error) {
	switch {
	case p == nil:
		return nil, errors.New("was not kept")
	case p.Len > llm.MaxSaid:
		return nil, fmt.Errorf("has %d bytes, and %d are read at most", p.Len, int64(llm.MaxSaid))
	}
	return p.Bytes(store)
}

// listen returns the listener of a lane. Few are kept, for each holds a request.
func (b *Book) listen(l *lane) *llm.Listener {
	if i := slices.Index(b.heard, l); i >= 0 {
		b.heard = slices.Delete(b.heard, i, i+1)
	} else if l.listener = new(llm.Listener); len(b.heard) == maxListeners {
		b.heard[0].listener = nil
		b.heard = slices.Delete(b.heard, 0, 1)
	}
	b.heard = append(b.heard, l)
	return l.listener
}

// tell notes what was said; nil is nothing.
func (t *Turn) tell(said *llm.Said, names bool) {
	if said == nil {
		return
	}
	t.Prompt = promptOf(said.New)
	if said.Answer == nil {
		return
	}
	text := TextOf(said.Answer.Message.Content)
	t.Answer = words(text)
	whole := []byte(text)
	for _, call := range said.Answer.Message.ToolCalls {
		arguments := Canonical(call.Arguments)
		t.Tools = append(t.Tools, ToolCall{strings.Clone(call.Name), words(string(arguments)), cas.Sum(arguments)})
		if names {
			t.Named = append(t.Named, fileNames(string(arguments)))
		}
		whole = append(append(append(whole, "\x00"+call.Name+"\x00"...), arguments...), '\n')
	}
	t.Said = cas.Sum(whole)
}

// Bounds of what is looked for names of files, in bytes, and of how many are kept.
const maxNamed, maxNames = 256 << 10, 20

// fileNames are the last elements of what looks like a path in the arguments of a tool: words with a dot or a slash.
func fileNames(arguments string) (names []string) {
	isEnd := func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("./_-~+@", c)
	}
	for word := range strings.FieldsFuncSeq(arguments[:min(len(arguments), maxNamed)], isEnd) {
		name := path.Base(strings.TrimRight(word, "./"))
		if len(names) < maxNames && len(word) <= maxWords*2 && strings.ContainsAny(word, "./") && len(name) > 1 && !slices.Contains(names, name) {
			names = append(names, strings.Clone(name))
		}
	}
	return names
}

// eachText tells each text that was said.
func eachText(said *llm.Said, tell func(string)) {
	for _, m := range said.New {
		for _, text := range m.Texts {
			tell(text)
		}
		for _, r := range m.Results {
			tell(TextOf(r.Output))
		}
	}
	if said.Answer == nil {
		return
	}
	tell(TextOf(said.Answer.Message.Content))
	for _, call := range said.Answer.Message.ToolCalls {
		tell(string(call.Arguments))
	}
}

// promptOf is the first words of the last thing that is new.
func promptOf(heard []llm.Heard) string {
	for i := len(heard) - 1; i >= 0; i-- {
		switch m := &heard[i]; {
		case m.Role == llm.RoleAssistant:
		case len(m.Results) > 0 && len(m.Texts) == 0:
			return words(TextOf(m.Results[len(m.Results)-1].Output))
		case len(m.Texts) > 0:
			return words(m.Texts[len(m.Texts)-1])
		}
	}
	return ""
}

// TextOf is the text of a message or a result: a JSON string, or blocks of which some have one.
func TextOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	v, err := canonjson.Parse(content)
	if err != nil {
		return ""
	}
	var texts []string
	for i := range v.Elems {
		if t, ok := v.Elems[i].Get("text"); ok && t.Kind == canonjson.String {
			texts = append(texts, t.Str)
		}
	}
	return strings.Join(texts, "\n")
}

// Canonical is JSON as canonical JSON; as it stands where it is none.
func Canonical(b json.RawMessage) []byte {
	v, err := canonjson.Parse(b)
	if err != nil {
		return b
	}
	return v.Append(nil)
}

// words are the first words of a text, on one line.
func words(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 8*maxWords)], "")), " ")
	if runes := []rune(s); len(runes) > maxWords {
		return string(runes[:maxWords-1]) + "…"
	}
	return strings.Clone(s)
}

// conversations gives each turn its number.
func (b *Book) conversations() []*Conversation {
	var out []*Conversation
	for _, l := range b.lanes {
		slices.SortStableFunc(l.Turns, func(a, b Turn) int {
			return cmp.Or(cmp.Compare(a.arrival, b.arrival), cmp.Compare(a.Seq, b.Seq))
		})
		answered := 0
		for i := range l.Turns {
			l.Turns[i].Number = answered + 1
			if l.Turns[i].Answered() {
				answered++
			}
		}
		out = append(out, &l.Conversation)
	}
	slices.SortFunc(out, func(a, b *Conversation) int {
		return cmp.Or(cmp.Compare(a.Turns[0].arrival, b.Turns[0].arrival), cmp.Compare(a.Turns[0].Seq, b.Turns[0].Seq))
	})
	return out
}
