package derive

import (
	"io"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An MCPBook is what was said with MCP servers, for clients that nobody recorded.
type MCPBook struct {
	*mcp.Book
	// Reveal puts the secrets of the environment in the place of their placeholders.
	Reveal func([]byte) []byte
	Log    *mcp.Log  // writes nothing: brings messages into the form of the tape
	Store  cas.Store // of the tape

	tape io.Closer
}

// OpenMCPBook reads the conversations with MCP servers of the recording, or the bare tape, at path. What a client asks is compared under the
// recording's masks, and secrets in it by their placeholders: those that env (NAME=VALUE) or their shape give away, and those that the
// recording met before it knew them. each is told of each record of the tape; nil is not. The book must be closed.
func OpenMCPBook(path string, env []string, each func(*tape.Record)) (*MCPBook, error) {
	s, err := secrets.OfProject(env)
	if err != nil {
		return nil, err
	}
	rec, t, err := recording.OpenEither(path)
	if err != nil {
		return nil, err
	}
	b := &MCPBook{Reveal: s.Reveal, Store: t.Store, tape: t}
	if err := b.read(rec, t, s, each); err != nil {
		t.Close()
		return nil, err
	}
	return b, nil
}

func (b *MCPBook) read(rec *recording.Recording, t *tape.Tape, s *scrub.Scrubber, each func(*tape.Record)) (err error) {
	o := &mcp.BookOptions{Scrub: s}
	if rec != nil {
		if o.Mask, err = rec.Manifest.Masking.Masker(&rec.Manifest.Roots); err != nil {
			return err
		}
		s.Seek(recording.LateSecrets(rec.Manifest.Secrets))
	}
	b.Log = mcp.NewLog(nil, s, o.Mask, nil)
	b.Book, err = mcp.NewBook(func(yield func(*tape.Record, error) bool) {
		for rec, err := range t.Records() {
			if err == nil && each != nil {
				each(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, t.Store, o)
	return err
}

// Close closes the tape. Nothing is to be answered any more.
func (b *MCPBook) Close() error { return b.tape.Close() }
