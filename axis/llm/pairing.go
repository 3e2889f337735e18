package llm

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// openCalls are the calls of the last answer, whose results may come without their ids.
type openCalls struct {
	calls  []*openCall
	given  bool                   // some of the ids are ours
	byID   map[string]*openCall   // by id, and by the id that the program gave it in its history
	byName map[string][]*openCall // by the tool's name, and "" for all: in order, those whose result may still come
}

// An openCall is one of them.
type openCall struct {
	name, id string
	given    bool // id is ours
	done     bool // its result came
}

// give returns the id of the next call that has none.
func (l *Listener) give() string {
	l.given++
	return CallID(l.given)
}

// answered notes the calls of an answer, and gives ids to those without.
func (l *Listener) answered(calls []sessionlog.ToolCall) {
	l.open = openCalls{byID: make(map[string]*openCall, len(calls)), byName: make(map[string][]*openCall)}
	o := &l.open
	for i := range calls {
		c := &openCall{name: calls[i].Name, id: calls[i].ID}
		if c.id == "" {
			c.id, c.given, o.given = l.give(), true, true
			calls[i].ID = c.id
		}
		o.calls, o.byID[c.id] = append(o.calls, c), c
		o.byName[c.name] = append(o.byName[c.name], c)
		if c.name != "" {
			o.byName[""] = append(o.byName[""], c)
		}
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
		if i == last && l.open.repeats(m.Calls) {
			l.open.rename(m.Calls)
		} else if len(m.Calls) > 0 {
			l.answered(m.Calls)
		}
		for j := range m.Results {
			m.Results[j].CallID = l.resultOf(m.Results[j].CallID, m.names[j])
		}
	}
}

// repeats reports whether calls of a history are those of the last answer, of which some had no id.
func (o *openCalls) repeats(calls []sessionlog.ToolCall) bool {
	return o.given && slices.EqualFunc(calls, o.calls, func(a sessionlog.ToolCall, b *openCall) bool { return a.Name == b.name })
}

// rename gives the calls of a history the ids that the last answer's got.
func (o *openCalls) rename(calls []sessionlog.ToolCall) {
	for i, c := range o.calls {
		if !c.given {
			continue
		}
		if alias := calls[i].ID; alias != "" {
			o.byID[alias] = c
		}
		calls[i].ID = c.id
	}
}

// resultOf returns the id of the call that a result belongs to.
func (l *Listener) resultOf(id, name string) string {
	c := l.open.byID[id]
	if c == nil && (l.open.given || id == "") {
		c = l.open.next(name, id != "")
	}
	switch {
	case c != nil:
		c.done = true
		return c.id
	case id == "":
		return l.give()
	}
	return id
}

// next returns the first call of a name whose result may still come, nil for none: of those whose id is ours alone, where the
// result has one that is not known.
func (o *openCalls) next(name string, given bool) *openCall {
	for queue := o.byName[name]; len(queue) > 0; {
		c := queue[0]
		queue = queue[1:]
		o.byName[name] = queue
		if !c.done && (c.given || !given) {
			return c
		}
	}
	return nil
}
