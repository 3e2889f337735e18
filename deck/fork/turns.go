package fork

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Turn is one answer of a model in a few words.
type Turn struct {
	Turn         int        `json:"turn"`
	Seq          uint64     `json:"seq"`
	Model        string     `json:"model"` // that was asked
	Answer       string     `json:"answer"`
	ToolCalls    []ToolCall `json:"tool_calls"`
	InputTokens  int64      `json:"input_tokens"`
	OutputTokens int64      `json:"output_tokens"`
	Status       int        `json:"status"`
	Error        string     `json:"error,omitempty"`
}

// maxWords is how many runes of an answer a Turn holds.
const maxWords = 200

// TurnOf is a call in a few words. Its payloads are in store; what cannot be read is left out.
func (e *Exchange) TurnOf(store cas.Store) Turn {
	t := Turn{Turn: e.Turn, Seq: e.Seq, Model: e.Call.Model, Status: e.Call.Status, Error: e.Call.Error, ToolCalls: []ToolCall{}}
	if sent := tape.SentOf(e.Call); sent != nil {
		t.Model = cmp.Or(sent.Model, t.Model)
	}
	if usage, ok := llm.UsageOf(e.Call); ok {
		t.InputTokens, t.OutputTokens = usage.InputTokens, usage.OutputTokens
	}
	said, err := said(e.Call, store)
	if err != nil || said.Answer == nil {
		return t
	}
	words := []rune(strings.Join(strings.Fields(textOf(said.Answer.Message.Content)), " "))
	t.Answer = string(words[:min(len(words), maxWords)])
	for _, c := range said.Answer.Message.ToolCalls {
		t.ToolCalls = append(t.ToolCalls, ToolCall{c.ID, c.Name, c.Arguments})
	}
	return t
}

// canonical is JSON in its one form; what is none is itself.
func canonical(raw json.RawMessage) string {
	b, err := canonjson.Append(nil, raw)
	if err != nil {
		return string(raw)
	}
	return string(b)
}

// words are what was answered in a line, and tokens what it took.
func (t *Turn) words() (words, tokens string) {
	var parts []string
	for _, c := range t.ToolCalls {
		parts = append(parts, c.Name+" "+string(c.Arguments))
	}
	if t.Answer != "" {
		parts = append(parts, t.Answer)
	}
	switch {
	case t.Status == 0:
		parts = append(parts, "no answer: "+t.Error)
	case t.Status >= 300:
		parts = append(parts, "status "+strconv.Itoa(t.Status))
	case t.Error != "":
		parts = append(parts, "cut: "+t.Error)
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
	err := row("turn", cut("recorded "+modelOf(turns[0]), cell), cut("fork "+modelOf(turns[1]), cell))
	for i := range min(n, maxRows) {
		cells, number := [2]string{"-", "-"}, 0
		for side := range turns {
			if i < len(turns[side]) {
				t := &turns[side][i]
				words, tokens := t.words()
				cells[side], number = cut(words, cell-len(tokens))+tokens, t.Turn
			}
		}
		err = errors.Join(err, row(strconv.Itoa(number), cells[0], cells[1]))
	}
	if n > maxRows {
		err = errors.Join(err, row("…", fmt.Sprintf("%d turns", len(turns[0])), fmt.Sprintf("%d turns", len(turns[1]))))
	}
	return err
}

// modelOf are the models that turns asked.
func modelOf(turns []Turn) string {
	var models []string
	for i := range turns {
		if !slices.Contains(models, turns[i].Model) {
			models = append(models, turns[i].Model)
		}
	}
	return strings.Join(models, ", ")
}

// cut is the beginning of a text, n runes at most.
func cut(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}
