package llm

import (
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// An openCall is a call of the last answer, whose result may come without its id.
type openCall struct {
	name  string
	id    string
	alias string // the id that the program gave it in its history; "" for none
	given bool   // id is ours
	done  bool   // its result came
}

// give returns the id of the next call that has none.
func (l *Listener) give() string {
	l.given++
	return "call_" + strconv.Itoa(l.given)
}

// answered notes the calls of an answer, and gives ids to those without.
func (l *Listener) answered(calls []sessionlog.ToolCall) {
	l.open = l.open[:0:0]
	for i := range calls {
		c := openCall{name: calls[i].Name, id: calls[i].ID}
		if c.id == "" {
			c.id, c.given = l.give(), true
			calls[i].ID = c.id
		}
		l.open = append(l.open, c)
	}
}

// pair gives the calls and results of new messages the ids that they lack.
func (l *Listener) pair(heard []Heard) {
	last := -1
	for i := range heard {
		if len(heard[i].Calls) > 0 {
			last = i
		}
	}
	for i := range heard {
		m := &heard[i]
		if i == last && l.repeats(m.Calls) {
			l.rename(m.Calls)
		} else if len(m.Calls) > 0 {
			l.answered(m.Calls)
		}
		for j := range m.Results {
			m.Results[j].CallID = l.resultOf(m.Results[j].CallID, m.names[j])
		}
	}
}

// repeats reports whether calls of a history are those of the last answer, of which some had no id.
func (l *Listener) repeats(calls []sessionlog.ToolCall) bool {
	return len(calls) == len(l.open) && slices.ContainsFunc(l.open, func(c openCall) bool { return c.given }) &&
		slices.EqualFunc(calls, l.open, func(a sessionlog.ToolCall, b openCall) bool { return a.Name == b.name })
}

// rename gives the calls of a history the ids that the last answer's got.
func (l *Listener) rename(calls []sessionlog.ToolCall) {
	for i := range calls {
		if l.open[i].given {
			l.open[i].alias, calls[i].ID = calls[i].ID, l.open[i].id
		}
	}
}

// resultOf returns the id of the call that a result belongs to.
func (l *Listener) resultOf(id, name string) string {
	for i := range l.open {
		if c := &l.open[i]; id != "" && (c.id == id || c.alias == id) {
			c.done = true
			return c.id
		}
	}
	for i := range l.open {
		c := &l.open[i]
		if !c.done && (c.given || id == "") && (name == "" || c.name == name) {
			c.done = true
			return c.id
		}
	}
	if id == "" {
		id = l.give()
	}
	return id
}
