package exchange

import (
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A body scrubs one answer and keeps it until the exchange ends.
type body interface {
	// chunk takes what one read of the upstream gave.
	chunk(c tape.Chunk, b []byte) error
	// finish ends the answer. cut says that the upstream did not end it itself.
	finish(cut bool) (answer, error)
}

// An answer is what is kept of a body.
type answer struct {
	// store puts the bytes to keep into the recorder's store; nil where none are kept.
	store   func(*tape.Recorder) (*tape.Payload, error)
	chunks  []tape.Chunk // in the stored bytes
	decoded bool         // the stored bytes are without the Content-Encoding that they came in
	resized bool         // the stored bytes are not as many as came
	lost    string       // why none are kept
	known   bool         // usage is that of a model, and need not be looked for
	usage   []byte
}

// plainBody is a body without Content-Encoding: it is scrubbed as it comes and goes to the spool.
type plainBody struct {
	spool answerSpool
	clean *scrub.Writer
	at    chunkMap
}

func newPlainBody(s *scrub.Scrubber, sp answerSpool) *plainBody {
	b := &plainBody{spool: sp, clean: s.Writer(sp)}
	b.clean.OnReplace(b.at.replaced)
	return b
}

func (b *plainBody) chunk(c tape.Chunk, p []byte) error {
	b.at.add(c, len(p))
	_, err := b.clean.Write(p)
	return err
}

// more takes bytes that belong to the chunk before.
func (b *plainBody) more(p []byte) error {
	b.at.extend(len(p))
	_, err := b.clean.Write(p)
	return err
}

func (b *plainBody) finish(bool) (answer, error) {
	if err := b.clean.Close(); err != nil {
		return answer{lost: err.Error()}, err
	}
	return answer{store: b.spool.payload, chunks: b.at.stored(), resized: len(b.at.moves) > 0}, nil
}
