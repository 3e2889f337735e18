package mcp

import (
	"bytes"
	"errors"
	"io"

	"github.com/tapedeck-dev/tapedeck/internal/lend"
)

// lend passes what the client writes on to the server's stdin where that is no conversation: what the server leaves unread stays in the
// client's pipe, which others may read after it. It reports whether there is more to copy: all of a conversation, or the end.
func (t *relay) lend(from, to *end) (more bool) {
	if t.now() == undecided && !t.opensNothing(from) {
		return true
	}
	loan, err := lend.New(from.file.f, to.file.f)
	if err != nil {
		return true // no two pipes, or it cannot be done here
	}
	defer loan.Close()
	for t.now() == plain {
		b, err := loan.Pass(t.left)
		if errHear := t.hear(Client, b); errHear != nil {
			t.fail(errHear)
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return true
}

// opensNothing decides that a relay carries no conversation by the first byte of what the client writes, which nobody has read yet.
func (t *relay) opensNothing(from *end) bool {
	b, err := lend.Peek(from.file.f)
	b = bytes.TrimLeft(b, blanks)
	if err != nil || len(b) == 0 || b[0] == '{' || b[0] == '[' {
		return false
	}
	if _, err := t.settle(nil); err != nil {
		t.fail(err)
		return false
	}
	return true
}
