package foreign

import (
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// event reads what the program says of its own work. The conversation's items say all of it but the tokens, how a turn ended,
// and what became of sub-agents.
func (c *codexReader) event(b []byte, n int) error {
	s := &c.inner
	s.Reset(b)
	kind := textIn(s, "type")
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
		c.r.note("line %d: the program says that a turn failed", n)
		return c.stop(sessionlog.ReasonError)
	}
	c.r.skip("events of type "+kind, codexRepeats, n)
	return nil
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
func (c *codexReader) compacted(_ []byte, n int) error {
	c.r.skip("lines of type compacted", "the history was made shorter; the conversation goes on", n)
	if c.d == nil {
		return nil
	}
	return c.flush()
}
