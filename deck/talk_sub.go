package deck

import (
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Another lane is one of three things: the conversation of a sub-agent, which the program holds while a call of the main one is
// open; the main conversation under another name, where it went on; or what is none of the conversation's: a title, a summary.
//
// A sub-agent's lane declares tools, and its first request came after an answer of the main lane that called tools and before
// the request that brought what they gave. It runs from then on, and has joined once the main lane goes on and the last answer
// of its own called no tool. Whether a request came before the main lane's next one shows only when that is read, so the events
// stand there.

// The states of a sub-agent that a tape shows.
const (
	agentRunning = "running"
	agentJoined  = "joined"
)

// aside reads a call of another lane than the main one.
func (d *talk) aside(k *tape.LLMCall, l *talkLane) error {
	if l.looked && l.tools {
		l.heard, l.call = d.at, k
		return nil
	}
	said, err := d.peek(k)
	if err != nil {
		return nil // a call that cannot be read is none of a sub-agent's
	}
	if !said.Tools {
		d.summed(said)
	}
	if l.looked {
		return nil
	}
	l.looked = true
	if d.goesOn(said, l) {
		d.main.left = said.Follows == ""
		d.main = l
		d.listener = new(llm.Listener)
		d.asked, d.before = 0, 0
		return d.mainCall(k)
	}
	l.tools = said.Tools
	if l.tools && d.calls > 0 && d.dialog.Turn() > 0 {
		l.heard, l.call = d.at, k
		d.waiting = append(d.waiting, l)
	}
	return nil
}

// peek reads a call by itself; nil for one of no conversation.
func (d *talk) peek(k *tape.LLMCall) (*llm.Said, error) {
	request, response, err := d.bodies(k)
	if err != nil {
		return nil, err
	}
	return llm.ReadCall(k, request, response)
}

// goesOn reports whether the main conversation goes on in a lane whose first call is said: the provider keeps its history and
// each request brings what is new alone; or the lane before it has come to its end, no call of it is open, and this one says
// the same of who the model is and has tools too, as after a compaction or where the conversation is begun anew.
func (d *talk) goesOn(said *llm.Said, l *talkLane) bool {
	if said.Follows != "" {
		return said.Follows == d.lastID
	}
	return d.calls == 0 && d.dialog.Turn() > 0 && d.tools && said.Tools && said.System == d.system && said.System != "" &&
		d.main.last.seq < l.first.seq && l.arrival > d.main.lastArrival
}

// agents says which sub-agents began, and which have joined, before the request of the main lane that arrived.
func (d *talk) agents(arrival uint64) error {
	for _, l := range d.waiting {
		if l.arrival > arrival {
			continue // it was begun for nothing that this request brings
		}
		if err := d.agent(l, agentRunning, l.first); err != nil {
			return err
		}
		d.subs = append(d.subs, l)
	}
	d.waiting = d.waiting[:0]
	running := d.subs[:0]
	for _, l := range d.subs {
		if said, err := d.peek(l.call); err == nil && said.Answer != nil && len(said.Answer.Message.ToolCalls) == 0 {
			if err := d.agent(l, agentJoined, l.heard); err != nil {
				return err
			}
			continue
		}
		running = append(running, l)
	}
	d.subs = running
	return nil
}

func (d *talk) agent(l *talkLane, state string, at place) error {
	return d.putAt(&sessionlog.AgentProcessChanged{
		Common: sessionlog.Common{Turn: d.dialog.Turn()}, AgentID: l.name, ParentSessionID: d.src.id, State: state,
		PermittedCapabilityIDs: []string{},
	}, at)
}

// unmatched reports whether a call is one that a replay refused.
func unmatched(k *tape.LLMCall) bool { return k.Lane == exchange.Unmatched }
