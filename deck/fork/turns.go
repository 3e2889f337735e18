package fork

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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

// cut is the beginning of a text, n runes at most.
func cut(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:max(n, 1)-1]) + "…"
}
