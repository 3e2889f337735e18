package foreign

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// event reads what the program says of its own work. The conversation's items say all of it but the tokens, how a turn ended,
// and what became of sub-agents.
func (c *codexReader) event(b []byte, n int) error {
	s := &c.inner
	s.Reset(b)
	kind := codexKind(s)
	if s.Err() != nil {
		return broken{s.Err()}
	}
	switch kind {
	case "token_count":
		if c.records || c.d == nil {
			return nil
		}
		return c.spent(b, "info", "total_token_usage")
	case "turn_aborted":
		return c.stop(sessionlog.ReasonInterrupted)
	case "error":
		return c.failed(n)
	case "task_complete", "turn_complete":
		if s.Reset(b); hasError(s) {
			return c.failed(n)
		}
	case "item_completed", "collab_agent_spawn_end", "collab_close_end", "collab_waiting_end":
		if kind == "item_completed" && !bytes.Contains(b[:min(len(b), 512)], []byte(`"CollabAgentToolCall"`)) {
			break
		}
		return c.agents(b, kind)
	}
	c.r.skip("events of type "+kind, codexRepeats, n)
	return nil
}

// codexKind reads the type of a payload, no further where it comes first, as it does.
func codexKind(s *jsonscan.Scanner) string {
	from := s.Mark()
	if s.Begin('{'); s.KeyIs("type") {
		return text(s)
	}
	s.Back(from)
	return textIn(s, "type")
}

// failed ends the run as one that failed.
func (c *codexReader) failed(n int) error {
	c.r.note("line %d: the program says that a turn failed", n)
	return c.stop(sessionlog.ReasonError)
}

// hasError reports whether an object says under "error" what went wrong.
func hasError(s *jsonscan.Scanner) (has bool) {
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) == "error" {
			has = s.Peek() != 'n'
		}
		s.Skip()
	}
	return has
}

// stop ends the run for a reason.
func (c *codexReader) stop(reason string) error {
	if c.d == nil {
		return nil
	}
	return c.end(reason)
}

// spent ends an answer: its tokens stand in b, below the keys of path. Those of the whole session only grow: what is new is spent.
func (c *codexReader) spent(b []byte, path ...string) error {
	s := &c.inner
	s.Reset(b)
	n, found := codexTokens(s, path)
	if s.Err() != nil {
		return broken{s.Err()}
	}
	if c.d == nil || !found {
		return nil
	}
	if !c.records {
		n, c.total = n-c.total, n
	}
	if err := c.answer(); err != nil {
		return err
	}
	c.d.Spend(max(n, 0))
	return nil
}

// codexTokens finds total_tokens below the keys of path.
func codexTokens(s *jsonscan.Scanner, path []string) (n int64, found bool) {
	if s.Null() {
		return 0, false
	}
	for s.Begin('{'); s.More('}'); {
		key := s.Key()
		switch {
		case len(path) > 0 && string(key) == path[0]:
			n, found = codexTokens(s, path[1:])
		case len(path) == 0 && string(key) == "total_tokens":
			n, found = s.Int(), true
		default:
			s.Skip()
		}
	}
	return n, found
}

// compacted is where the history was made shorter.
func (c *codexReader) compacted(b []byte) error {
	s := &c.inner
	s.Reset(b)
	summary := textIn(s, "message")
	if s.Err() != nil {
		return broken{s.Err()}
	}
	c.begin()
	return c.compressed("compacted", summary)
}

// agents reads what became of sub-agents: of a CollabAgentToolCall the states, of older events the one state that each has.
func (c *codexReader) agents(b []byte, kind string) error {
	s := &c.inner
	s.Reset(b)
	if c.roles == nil {
		c.roles = map[string]string{}
	}
	var list []*sessionlog.AgentProcessChanged
	var one sessionlog.AgentProcessChanged
	var read func()
	read = func() {
		for s.Begin('{'); s.More('}'); {
			switch string(s.Key()) {
			case "item":
				if s.Peek() == '{' {
					read()
					continue
				}
				s.Skip()
			case "new_thread_id", "receiver_thread_id":
				one.AgentID = text(s)
			case "new_agent_role":
				one.Role = text(s)
			case "status":
				one.State = codexState(s)
			case "receiver_agents":
				codexRoles(s, c.roles)
			case "agents_states", "statuses":
				list = codexStates(s)
			default:
				s.Skip()
			}
		}
	}
	read()
	if s.Err() != nil {
		return broken{s.Err()}
	}
	if c.d == nil {
		return nil
	}
	if kind != "item_completed" && one.AgentID != "" && one.State != "" {
		list = append(list, &one)
	}
	for _, e := range list {
		e.ParentSessionID = c.r.Session
		if e.Role == "" {
			e.Role = c.roles[e.AgentID]
		} else {
			c.roles[e.AgentID] = e.Role
		}
		c.then(e)
	}
	return nil
}

// codexStates reads {id: state}.
func codexStates(s *jsonscan.Scanner) (list []*sessionlog.AgentProcessChanged) {
	if s.Peek() != '{' {
		s.Skip()
		return nil
	}
	for s.Begin('{'); s.More('}'); {
		e := &sessionlog.AgentProcessChanged{AgentID: string(s.Key())}
		if e.State = codexState(s); e.State != "" {
			list = append(list, e)
		}
	}
	return list
}

// codexState reads a state: a word, or {word: what it said}.
func codexState(s *jsonscan.Scanner) (state string) {
	if s.Peek() != '{' {
		state = text(s)
	} else {
		for s.Begin('{'); s.More('}'); {
			state = string(s.Key())
			s.Skip()
		}
	}
	switch state {
	case "pending_init":
		return agentRunning
	case "completed":
		return agentJoined
	}
	return state
}

// codexRoles reads [{thread_id, agent_role}].
func codexRoles(s *jsonscan.Scanner, roles map[string]string) {
	if s.Peek() != '[' {
		s.Skip()
		return
	}
	for s.Begin('['); s.More(']'); {
		if s.Peek() != '{' {
			s.Skip()
			continue
		}
		var id, role string
		for s.Begin('{'); s.More('}'); {
			switch string(s.Key()) {
			case "thread_id":
				id = text(s)
			case "agent_role":
				role = text(s)
			default:
				s.Skip()
			}
		}
		roles[id] = role
	}
}
