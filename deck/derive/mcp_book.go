package derive

import (
	"io"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An MCPBook is what was said with MCP servers, for clients that nobody recorded.
type MCPBook struct {
	*mcp.Book
	// Reveal puts the secrets of the environment in the place of their placeholders.
	Reveal func([]byte) []byte

	tape io.Closer
}

// OpenMCPBook reads the conversations with MCP servers of the recording, or the bare tape, at path. What a client asks is compared under the
// recording's masks, and secrets in it by their placeholders: those that env (NAME=VALUE) or their shape give away, and those that the
// recording met before it knew them. It must be closed.
func OpenMCPBook(path string, env []string) (*MCPBook, error) {
	rec, err := recording.OpenIfRecording(path)
	if err != nil {
		return nil, err
	}
	s, err := secrets.OfProject(env)
	if err != nil {
		return nil, err
	}
	o := &mcp.BookOptions{Scrub: s}
	if rec != nil {
		if o.Mask, err = rec.Manifest.Masking.Masker(&rec.Manifest.Roots); err != nil {
			return nil, err
		}
		s.Seek(recording.LateSecrets(rec.Manifest.Secrets))
		path = rec.TapePath()
	}
	t, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	book, err := mcp.NewBook(t.Records(), t.Store, o)
	if err != nil {
		t.Close()
		return nil, err
	}
	return &MCPBook{Book: book, Reveal: s.Reveal, tape: t}, nil
}

// Close closes the tape. Nothing is to be answered any more.
func (b *MCPBook) Close() error { return b.tape.Close() }
