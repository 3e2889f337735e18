package exchange

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
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

// plainBody is a body without Content-Encoding: it is scrubbed as it comes and goes to the spool. Where names in it are looked at, a
// document waits in memory for that, up to maxHeld, so that a value is hidden that stands before its name too; of a stream, each chunk is
// looked at for itself. The program has its bytes at once in any case.
type plainBody struct {
	spool  answerSpool
	clean  *scrub.Writer
	at     chunkMap
	learn  *learner // nil where nothing is looked for
	held   []byte
	heldAt chunkMap
}

func newPlainBody(s *scrub.Scrubber, sp answerSpool, learn *learner) *plainBody {
	b := &plainBody{spool: sp, clean: s.Writer(sp), learn: learn}
	b.clean.OnReplace(func(start, end int64, n int) { b.at.moves = append(b.at.moves, move{start, end, n}) })
	return b
}

func (b *plainBody) chunk(c tape.Chunk, p []byte) error {
	switch {
	case b.learn == nil || b.learn.kind == scrub.BodyOther:
		return b.pass(c, p)
	case b.learn.kind == scrub.BodyStream:
		b.look(p, true)
		return b.pass(c, p)
	}
	lines := bytes.HasSuffix(b.held, []byte("}\n")) || bytes.HasSuffix(b.held, []byte("}\r\n"))
	next := lines && b.learn.kind == scrub.BodyJSON && scrub.BeginsJSON(p) // lines of JSON that are not said to be
	b.heldAt.add(c, len(p))
	b.held = append(b.held, p...)
	b.learn.decide(b.held)
	switch {
	case next, len(b.held) > maxHeld, b.learn.kind == scrub.BodyStream:
		return b.release(scrub.BodyStream)
	case b.learn.kind == scrub.BodyOther:
		return b.release(scrub.BodyOther)
	}
	return nil
}

// pass scrubs a chunk.
func (b *plainBody) pass(c tape.Chunk, p []byte) error {
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

// look looks at what is passed on next, a piece of a stream or a document, and hides the values in it that are too many to be known.
func (b *plainBody) look(p []byte, piece bool) {
	_, over := b.learn.whole(p, piece)
	for i := range over {
		over[i].Start += b.at.total
		over[i].End += b.at.total
	}
	b.clean.HideAt(over)
}

// release passes on what waits; what comes after it is of a kind.
func (b *plainBody) release(kind scrub.BodyKind) error {
	if b.learn.kind != scrub.BodyOther && len(b.held) > 0 {
		b.look(b.held, kind == scrub.BodyStream)
	}
	b.learn.kind = kind
	held, chunks := b.held, b.heldAt.chunks
	b.held, b.heldAt = nil, chunkMap{}
	for _, c := range chunks {
		if err := b.pass(c, held[c.Offset:c.Offset+c.Length]); err != nil {
			return err
		}
	}
	return nil
}

func (b *plainBody) finish(bool) (answer, error) {
	var err error
	if b.learn != nil {
		err = b.release(scrub.BodyOther)
	}
	if err == nil {
		err = b.clean.Close()
	}
	if err != nil {
		return answer{lost: err.Error()}, err
	}
	return answer{store: b.spool.payload, chunks: b.at.stored(), resized: len(b.at.moves) > 0}, nil
}

// maxChunks bounds the boundaries that are kept of an answer: its record is one line, and a line has its limit. What comes
// after that many chunks counts to the last one.
const maxChunks = 500_000

// chunkMap carries the boundaries of chunks over from the bytes that came to the scrubbed bytes that are stored. A
// boundary inside a secret comes to stand behind its placeholder, so that a secret counts to the chunk in which it began.
type chunkMap struct {
	chunks []tape.Chunk // Offset and Length in the bytes that came
	total  int64        // bytes that came
	moves  []move       // in order of start
}

// move is one secret: the bytes from start to end of what came are n bytes in the store.
type move struct {
	start, end int64
	n          int
}

// add notes a chunk that came.
func (m *chunkMap) add(c tape.Chunk, length int) {
	if len(m.chunks) == maxChunks {
		m.extend(length)
		return
	}
	c.Offset, c.Length = m.total, int64(length)
	m.chunks = append(m.chunks, c)
	m.total += int64(length)
}

// extend adds bytes to the last chunk.
func (m *chunkMap) extend(length int) {
	m.chunks[len(m.chunks)-1].Length += int64(length)
	m.total += int64(length)
}

// stored returns the chunks in the stored bytes.
func (m *chunkMap) stored() []tape.Chunk {
	moves, shift, at := m.moves, int64(0), int64(0)
	for i := range m.chunks {
		c := &m.chunks[i]
		end := c.Offset + c.Length
		for len(moves) > 0 && moves[0].end <= end {
			shift += int64(moves[0].n) - (moves[0].end - moves[0].start)
			moves = moves[1:]
		}
		stop := end + shift
		if len(moves) > 0 && moves[0].start < end { // the boundary is inside this secret
			stop = moves[0].start + shift + int64(moves[0].n)
		}
		c.Offset, c.Length = at, stop-at
		at = stop
	}
	return m.chunks
}

// inMemory is the spool of a Tap whose recorder is to see every payload whole (TapOptions.NowMS).
type inMemory struct{ bytes.Buffer }

func (m *inMemory) payload(rec *tape.Recorder) (*tape.Payload, error) { return rec.Payload(m.Bytes()) }

func (m *inMemory) close() error { return nil }

func (m *inMemory) remove() error { return nil }

// discarded is a store that keeps nothing.
type discarded struct{ cas.Store }

// Put implements cas.Store.
func (discarded) Put(b []byte) (cas.Digest, error) { return cas.Sum(b), nil }

// PutReader implements cas.Store.
func (discarded) PutReader(r io.Reader) (cas.Digest, int64, error) {
	h := cas.NewHasher()
	n, err := io.Copy(h, r)
	return h.Sum(), n, err
}

// maxHeld bounds, in bytes, how much of an answer waits until the names in it have been looked at.
const maxHeld = 1 << 20

// A learner looks at the names in one answer.
type learner struct {
	tap         *Tap
	contentType string
	kind        scrub.BodyKind
}

// reads reports whether an answer that begins with head is looked at.
func (l *learner) reads(head []byte) bool {
	if l == nil {
		return false
	}
	l.decide(head)
	return l.kind != scrub.BodyOther
}

// decide settles the kind by the first bytes of an answer, where they are enough.
func (l *learner) decide(head []byte) {
	if l.kind != scrub.BodyUnsaid {
		return
	}
	if kind, ok := l.kind.Of(head); ok && kind == scrub.BodyParts {
		l.kind = scrub.BodyStream
	} else if ok {
		l.kind = kind
	}
}

// whole takes a whole answer, or what was held of one: a piece where it is of a stream that goes on. It reports whether something
// became known that was not, and where those values stand that are too many to be known.
func (l *learner) whole(b []byte, piece bool) (fresh bool, over []scrub.Place) {
	s := l.tap.scrubber
	if l.kind == scrub.BodyStream {
		return s.LearnAll(s.NamedInLines(b, piece))
	}
	return s.LearnAll(s.NamedInAnswer(l.contentType, b))
}

// passedBody is the body of a recorded answer that passes as it stands. Its bytes are in a store already.
type passedBody struct {
	recorded *Recorded
	from     cas.Store
	at       chunkMap
}

func (b *passedBody) chunk(c tape.Chunk, p []byte) error {
	b.at.add(c, len(p))
	return nil
}

func (b *passedBody) finish(bool) (answer, error) {
	a := answer{chunks: b.at.chunks, store: b.part}
	if p := b.recorded.Exchange.Response; p != nil && p.Len == b.at.total {
		a.store, a.known, a.usage = b.whole, true, b.recorded.usage
	}
	return a, nil
}

// whole puts the payload into the store of rec.
func (b *passedBody) whole(rec *tape.Recorder) (*tape.Payload, error) {
	p := b.recorded.Exchange.Response
	if p.Inline {
		return p, nil
	}
	return p, cas.Copy(rec.Store(), b.from, p.Hash)
}

// part puts what the program got of the payload into the store of rec.
func (b *passedBody) part(rec *tape.Recorder) (*tape.Payload, error) {
	if b.at.total == 0 {
		return rec.Payload(nil)
	}
	r, err := b.recorded.Exchange.Response.Open(b.from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return payloadFrom(rec, io.LimitReader(r, b.at.total))
}

// An answerSpool takes the bytes of an answer until its exchange ends.
type answerSpool interface {
	io.Writer
	// payload ends the answer and puts it into the recorder's store.
	payload(rec *tape.Recorder) (*tape.Payload, error)
	// close frees what the process holds; a part stays.
	close() error
	// remove frees everything.
	remove() error
}

// errDropped ends an answer that is not kept.
var errDropped = errors.New("the answer is not kept")

// unnamed is the spool of a run that keeps no parts: a short answer waits in memory, a long one goes to the store as it
// comes.
type unnamed struct{ *spool.Spool }

func (u unnamed) payload(*tape.Recorder) (*tape.Payload, error) { return u.Finish(nil) }

func (u unnamed) close() error { return u.remove() }

// remove ends an answer that payload has not ended; its error would say no more than that.
func (u unnamed) remove() error { _, _ = u.Finish(errDropped); return nil }

// part is the spool that a killed recorder leaves behind:
//
//	part = record newline *byte
//
// The record is the line that the tape would hold if the recorder ended now, without the response; the bytes are the
// answer's, scrubbed, as far as the scrubber has released them. A part is named by its arrival, in decimal, and is removed
// once the record of its exchange is on the tape.
type part struct {
	f    *os.File
	path string
	head int64 // length of the line
	size int64 // bytes of the answer
}

// createPart begins the part of the exchange that rec holds, for its owner alone. A file that is there already is left of
// an earlier recorder and an error.
func createPart(dir string, arrival uint64, rec *tape.Record) (*part, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.FormatUint(arrival, 10))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	line := append(tape.AppendRecord(nil, rec), '\n')
	p := &part{f: f, path: path, head: int64(len(line))}
	if _, err := f.Write(line); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// Write appends bytes of the answer. They are with the kernel when it returns.
func (p *part) Write(b []byte) (int, error) {
	n, err := p.f.Write(b)
	p.size += int64(n)
	return n, err
}

func (p *part) payload(rec *tape.Recorder) (*tape.Payload, error) {
	return payloadFrom(rec, io.NewSectionReader(p.f, p.head, p.size))
}

func (p *part) close() error { return p.f.Close() }

func (p *part) remove() error { return errors.Join(p.f.Close(), os.Remove(p.path)) }

// RecorderEnded is the Error of an exchange that was read from a part.
const RecorderEnded = "recorder ended"

// maxPartLine bounds a line of a part, in bytes: it holds headers and at most tape.InlineLimit bytes of a body.
const maxPartLine = 4 << 20

// A Part is one answer that was still streaming when its recorder ended, or that streams still.
type Part struct {
	// Kind is the exchange as a record would hold it: *tape.LLMCall or *tape.HTTPExchange, its Error RecorderEnded. Its
	// Response has the digest of the bytes that are there, and the text where it is short; no store holds longer ones.
	Kind tape.Kind
	*tape.Exchange
	Path string // of the part
	Head int64  // length in bytes of its first line: the answer begins there
	Len  int64  // bytes of the answer that are there
}

// Open streams the bytes of the answer that are there.
func (p *Part) Open() (io.ReadCloser, error) {
	f, err := os.Open(p.Path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(p.Head, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Parts reads the parts of a directory in order of arrival, those of a recorder that still runs too. A directory that does
// not exist has none. A part whose first line is not whole is skipped: nothing of its answer had been passed on.
func Parts(dir string) ([]*Part, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var parts []*Part
	for _, e := range entries {
		if !IsPart(e) {
			continue
		}
		p, err := readPart(filepath.Join(dir, e.Name()), true)
		if errors.Is(err, os.ErrNotExist) { // its exchange ended meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, func(a, b *Part) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return parts, nil
}

// IsPart reports whether an entry of a directory of parts is one: a regular file, named by its arrival in decimal.
func IsPart(e fs.DirEntry) bool {
	_, err := strconv.ParseUint(e.Name(), 10, 64)
	return err == nil && e.Type().IsRegular()
}

// ReadPartHead reads the first line of the part at path, of 4 MiB at most; nil where it is not whole yet. The answer is not
// read: there is no Response, and Len is 0. What is read does not change while the answer streams. Errors: fs.ErrNotExist where its
// exchange has ended; the file system's; one for a line that holds no exchange.
func ReadPartHead(path string) (*Part, error) { return readPart(path, false) }

// readPart reads one part, with its answer or without; nil where its first line is torn.
func readPart(path string, answer bool) (*Part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := jsonscan.NewLines(f, maxPartLine)
	line, err := lines.Next()
	switch {
	case errors.Is(err, io.EOF) || err == nil && lines.Torn():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("part %s: %w", path, err)
	}
	rec, err := tape.ParseRecord(line[:len(line)-1])
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", path, err)
	}
	p := &Part{Kind: rec.Kind, Exchange: tape.ExchangeOf(rec.Kind), Path: path, Head: int64(len(line))}
	if p.Exchange == nil {
		return nil, fmt.Errorf("part %s holds a %s", path, rec.Kind.Name())
	}
	if !answer {
		return p, nil
	}
	if _, err := f.Seek(p.Head, io.SeekStart); err != nil {
		return nil, err
	}
	if p.Response, err = payloadOf(f); err != nil {
		return nil, err
	}
	p.Len = p.Response.Len
	return p, nil
}

// payloadOf returns the payload that everything that r gives would be, in bounded memory.
func payloadOf(r io.Reader) (*tape.Payload, error) {
	return payloadIn(discarded{}, r, func(b []byte) (*tape.Payload, error) { return tape.MakePayload(discarded{}, b) })
}

// payloadFrom stores everything that r gives, in bounded memory.
func payloadFrom(rec *tape.Recorder, r io.Reader) (*tape.Payload, error) {
	return payloadIn(rec.Store(), r, rec.Payload)
}

// payloadIn makes a payload of everything that r gives: what may stand in its record by short, what is longer in a store.
func payloadIn(s cas.Store, r io.Reader, short func([]byte) (*tape.Payload, error)) (*tape.Payload, error) {
	head, err := io.ReadAll(io.LimitReader(r, tape.InlineLimit+1))
	if err != nil {
		return nil, err
	}
	if len(head) <= tape.InlineLimit {
		return short(head)
	}
	d, n, err := s.PutReader(io.MultiReader(bytes.NewReader(head), r))
	if err != nil {
		return nil, err
	}
	return tape.PayloadOf(d, n), nil
}
