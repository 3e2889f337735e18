package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxDecoded bounds what an answer may decode to, in bytes, so that a small one cannot fill the disk.
const maxDecoded = 1 << 30

// packedBody is a body with a Content-Encoding. It is held in memory, for it can only be scanned decoded: it is stored as
// it came where no secret lies inside, else decoded and scrubbed.
type packedBody struct {
	scrubber *scrub.Scrubber
	spool    answerSpool
	encoding string
	limit    int64    // of raw, in bytes
	learn    *learner // nil where names say nothing
	raw      []byte
	at       chunkMap
	lost     string
	over     []scrub.Place // values of names, in the decoded bytes, that are too many to be known
}

func (b *packedBody) chunk(c tape.Chunk, p []byte) error {
	b.at.add(c, len(p))
	if b.lost != "" {
		return nil
	}
	if int64(len(b.raw)+len(p)) > b.limit {
		b.lost = fmt.Sprintf("%v: %s, more than %d bytes, cannot be scanned for secrets", ErrTooLarge, b.encoding, b.limit)
		b.raw = nil
		return nil
	}
	b.raw = append(b.raw, p...)
	return nil
}

func (b *packedBody) finish(cut bool) (answer, error) {
	if b.lost != "" {
		return answer{lost: b.lost}, nil
	}
	asItCame := answer{
		store:  func(rec *tape.Recorder) (*tape.Payload, error) { return payloadFrom(rec, bytes.NewReader(b.raw)) },
		chunks: b.at.chunks,
	}
	if len(b.raw) == 0 { // the answer to HEAD, a 304: encoded in name only
		return asItCame, nil
	}
	found, err := b.scan(cut)
	if err != nil {
		return answer{lost: "body cannot be scanned for secrets: " + err.Error()}, nil
	}
	if !found {
		return asItCame, nil
	}
	return b.unpack(cut)
}

// unpack stores the body decoded and scrubbed. Chunks in which nothing ended leave none.
func (b *packedBody) unpack(cut bool) (answer, error) {
	plain, last := newPlainBody(b.scrubber, b.spool), -1
	plain.clean.HideAt(b.over)
	err := b.decode(cut, func(i int, p []byte) error {
		if i == last {
			return plain.more(p)
		}
		last = i
		return plain.chunk(b.at.chunks[i], p)
	})
	if err != nil {
		return answer{lost: err.Error()}, err
	}
	a, err := plain.finish(cut)
	a.decoded, a.resized = true, true
	return a, err
}

// scan reports whether a secret lies in the body. Of a stream that was cut, the end that no longer decodes is scanned as
// it stands.
func (b *packedBody) scan(cut bool) (found bool, err error) {
	w := b.scrubber.Writer(io.Discard)
	w.OnReplace(func(int64, int64, int) { found = true })
	var head []byte // in which names are looked for
	err = b.decode(cut, func(_ int, p []byte) error {
		if b.learn != nil {
			head = append(head, p[:min(len(p), maxHeld-len(head))]...)
		}
		_, err := w.Write(p)
		return err
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return false, err
	}
	if b.learn.reads(head) {
		var fresh bool
		fresh, b.over = b.learn.whole(head, false)
		found = found || fresh || len(b.over) > 0
	}
	if cut && !found {
		_, found = b.scrubber.Bytes(b.raw)
	}
	return found, nil
}

// decode gives the decoded bytes to emit, together with the number of the chunk that they came in: a boundary is where the
// decoder stood when it asked for the next chunk.
func (b *packedBody) decode(cut bool, emit func(i int, p []byte) error) error {
	src := &chunkReader{raw: b.raw, chunks: b.at.chunks}
	dec, err := newDecoder(b.encoding, src)
	if err != nil {
		return ignoreCut(err, cut)
	}
	defer dec.Close()
	buf, total := make([]byte, 32<<10), int64(0)
	for {
		n, err := dec.Read(buf)
		if total += int64(n); total > maxDecoded {
			return fmt.Errorf("%w: it decodes to more than %d bytes", ErrTooLarge, int64(maxDecoded))
		}
		if n > 0 {
			if err := emit(src.current(), buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return ignoreCut(err, cut)
		}
	}
}

// ignoreCut takes the end of the input in the middle of a stream for its end, where it was cut.
func ignoreCut(err error, cut bool) error {
	if cut && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
		return nil
	}
	return err
}

// chunkReader reads at most one chunk at a time, so that it is known which one a decoder is in.
type chunkReader struct {
	raw    []byte
	chunks []tape.Chunk
	i      int   // chunk that the next byte is in
	at     int64 // bytes read
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for r.i < len(r.chunks) && r.at >= r.chunks[r.i].Offset+r.chunks[r.i].Length {
		r.i++
	}
	if r.i == len(r.chunks) {
		return 0, io.EOF
	}
	end := r.chunks[r.i].Offset + r.chunks[r.i].Length
	n := copy(p, r.raw[r.at:end])
	r.at += int64(n)
	return n, nil
}

// current returns the number of the chunk that was read last.
func (r *chunkReader) current() int { return min(r.i, len(r.chunks)-1) }
