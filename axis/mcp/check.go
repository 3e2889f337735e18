package mcp

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Checker holds the records of a tape, given in order, to what a Log writes: a conversation begins with its mcp_open, once, and nothing
// of it comes behind its mcp_close. Calls of other producers have no conversation. The zero value is ready.
type Checker struct {
	ended map[uint64]bool // conversations that have begun
}

// Check takes the next record. An error says what does not fit; the record counts as read all the same.
func (c *Checker) Check(k tape.Kind) error {
	switch k := k.(type) {
	case *tape.MCPOpen:
		_, begun := c.ended[k.Conversation]
		if c.ended == nil {
			c.ended = make(map[uint64]bool)
		}
		c.ended[k.Conversation] = false
		switch {
		case k.Conversation == 0:
			return fmt.Errorf("an mcp_open has no conversation")
		case begun:
			return fmt.Errorf("conversation %d begins twice", k.Conversation)
		}
	case *tape.MCPText:
		return c.within(k.Name(), k.Conversation)
	case *tape.MCPClose:
		err := c.within(k.Name(), k.Conversation)
		if err == nil {
			c.ended[k.Conversation] = true
		}
		return err
	case *tape.MCPJSONRPC:
		if k.Conversation != 0 {
			return c.within(k.Name(), k.Conversation)
		}
	}
	return nil
}

func (c *Checker) within(kind string, conversation uint64) error {
	switch ended, begun := c.ended[conversation]; {
	case !begun:
		return fmt.Errorf("an %s belongs to conversation %d, which has not begun", kind, conversation)
	case ended:
		return fmt.Errorf("an %s belongs to conversation %d, which has ended", kind, conversation)
	}
	return nil
}
