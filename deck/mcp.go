package deck

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// recordedConversations are the conversations with MCP servers that a replay answers from.
type recordedConversations struct {
	book     *mcp.Book
	taken    uint64                    // the highest number of one
	stdio    int                       // how many are over stdio
	ends     map[uint64]mcp.Ended      // how their servers ended, by number
	changes  map[uint64][]*tape.Record // what they changed in files, by number
	within   map[uint64]uint64         // of those that servers held as clients: the conversation of that server, by number
	programs map[string]bool           // what servers were started as, without their directories
	blobs    cas.Store
	reveal   func([]byte) []byte
}

// newRecordedConversations reads the conversations of the tape whose records are given, with what the redactor knows. hold is that of mcp.BookOptions.
func newRecordedConversations(
	g *redactor, records iter.Seq2[*tape.Record, error], blobs cas.Store, reveal func([]byte) []byte, hold time.Duration,
) (*recordedConversations, error) {
	t := &recordedConversations{
		blobs: blobs, reveal: reveal, ends: make(map[uint64]mcp.Ended), changes: make(map[uint64][]*tape.Record), programs: make(map[string]bool),
		within: make(map[uint64]uint64),
	}
	var err error
	t.book, err = mcp.NewBook(func(yield func(*tape.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				t.survey(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, blobs, &mcp.BookOptions{Scrub: g.scrub, Mask: g.mask, Hold: hold})
	t.takeOver()
	return t, err
}

// takeOver gives the changes of servers that servers talked with to those that the program did: nobody else comes with a request.
func (t *recordedConversations) takeOver() {
	for n := range t.within {
		top, seen := n, 0
		for t.within[top] != 0 && seen <= len(t.within) {
			top, seen = t.within[top], seen+1
		}
		if changes := t.changes[n]; len(changes) > 0 && top != n {
			t.changes[top] = append(t.changes[top], changes...)
			slices.SortFunc(t.changes[top], func(a, b *tape.Record) int { return cmp.Compare(a.Seq, b.Seq) })
			delete(t.changes, n)
		}
	}
}

// survey remembers what the Book does not tell.
func (t *recordedConversations) survey(rec *tape.Record) {
	switch k := rec.Kind.(type) {
	case *tape.FileWrite, *tape.FileDelete:
		if n := files.ConversationOf(k); n != 0 {
			t.changes[n] = append(t.changes[n], rec)
		}
	case *tape.MCPOpen:
		t.taken = max(t.taken, k.Conversation)
		if n := tape.OriginOf(k); n != 0 {
			t.within[k.Conversation] = n
		}
		if k.Transport == mcp.Stdio {
			t.stdio++
			t.programs[strings.Clone(filepath.Base(k.Program))] = true
		}
	case *tape.MCPClose:
		if k.ExitCode != nil {
			t.ends[k.Conversation] = mcp.Ended{Exited: true, ExitCode: int(*k.ExitCode), Signal: strings.Clone(k.Signal)}
		}
	}
}

// openConversations makes what takes the conversations with MCP servers.
func (s *session) openConversations(o *sessionOptions) {
	lo := mcp.LogOptions{Learn: s.learnServer}
	over := &mcp.OverHTTPOptions{}
	if t := o.recorded; t != nil {
		lo.Taken = t.taken
		over.Book, over.Reveal = t.book, t.reveal
	}
	s.mcp = mcp.NewLog(s.rec, s.scrub, s.mask, &lo)
	if s.redactor.mcp != nil {
		over.Log = s.mcp
		s.http = mcp.NewOverHTTP(over)
	}
}

// learnServer makes the secrets known that a server is given: in its arguments, and in variables that its client has from a
// configuration and not from its own environment.
func (s *session) learnServer(o *mcp.Opened) {
	secrets.LearnArgs(s.scrub, o.Args)
	if o.Environ != nil {
		s.scrub.LearnEnv(o.Environ())
	}
}

// endConversations ends the conversations that are held over HTTP. The program's network is closed by then.
func (s *session) endConversations() {
	if s.http == nil {
		return
	}
	if err := s.http.End(); err != nil {
		s.fail(conversationFailed(err))
	}
}

// conversationFailed is err, which ended the recording of a conversation.
func conversationFailed(err error) error {
	return fmt.Errorf("a conversation with an MCP server: %w", err)
}

// errConversationsInJail refuses a replay outside the jail that could not answer for servers.
var errConversationsInJail = errors.New("its conversations with MCP servers over stdio are answered in the jail alone: leave out --proxy")
