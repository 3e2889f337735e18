package exchange

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

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
	plain, last := newPlainBody(b.scrubber, b.spool, nil), -1
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

// ErrEncoding is wrapped by the error for a Content-Encoding that cannot be decoded here.
var ErrEncoding = errors.New("content encoding not known")

// ErrTooLarge is wrapped by the error for a body that is larger than the limit that was set for it.
var ErrTooLarge = errors.New("body too large")

// maxZstdWindow bounds, in bytes, what a zstd frame may make its decoder allocate. RFC 8878 asks for 8 MiB at least.
const maxZstdWindow = 64 << 20

// CanDecode reports whether bodies in a content coding ("gzip", "br", …) can be decoded here. A coding that cannot must
// not be offered to an upstream.
func CanDecode(coding string) bool {
	switch normalCoding(coding) {
	case "", "gzip", "deflate", "br", "zstd":
		return true
	}
	return false
}

// Decode returns a body without its Content-Encoding. A body of more than limit bytes is an error that wraps ErrTooLarge,
// an encoding that is not known one that wraps ErrEncoding; bytes that do not decode give the decoder's error.
func Decode(contentEncoding string, body []byte, limit int64) ([]byte, error) {
	return DecodeCut(contentEncoding, body, limit, false)
}

// DecodeCut is Decode; of a body that was cut it returns what decodes.
func DecodeCut(contentEncoding string, body []byte, limit int64, cut bool) ([]byte, error) {
	if !encoded(contentEncoding) {
		if int64(len(body)) > limit {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
		}
		return body, nil
	}
	r, err := newDecoder(contentEncoding, bytes.NewReader(body))
	if err != nil {
		return nil, ignoreCut(err, cut)
	}
	defer r.Close()
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err := ignoreCut(err, cut); err != nil {
		return nil, err
	}
	if int64(len(out)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	return out, nil
}

// encoded reports whether a Content-Encoding header says that a body is encoded at all.
func encoded(contentEncoding string) bool {
	for _, coding := range strings.Split(contentEncoding, ",") {
		if normalCoding(coding) != "" {
			return true
		}
	}
	return false
}

// newDecoder returns a reader of the decoded body. The codings of the header are taken off in reverse, as RFC 9110 says.
func newDecoder(contentEncoding string, r io.Reader) (io.ReadCloser, error) {
	codings := strings.Split(contentEncoding, ",")
	d := &decoder{Reader: r}
	for i := len(codings) - 1; i >= 0; i-- {
		if err := d.take(normalCoding(codings[i])); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// decoder is a chain of decoders.
type decoder struct {
	io.Reader
	close []func()
}

// take puts the decoder of one more coding in front.
func (d *decoder) take(coding string) error {
	switch coding {
	case "":
	case "gzip":
		r, err := gzip.NewReader(d.Reader)
		if err != nil {
			return err
		}
		d.Reader = r
	case "deflate":
		r, err := newInflater(d.Reader)
		if err != nil {
			return err
		}
		d.Reader = r
	case "br":
		d.Reader = brotli.NewReader(d.Reader)
	case "zstd":
		r, err := zstd.NewReader(d.Reader, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return err
		}
		d.Reader = r
		d.close = append(d.close, r.Close)
	default:
		return fmt.Errorf("%w: %.40q", ErrEncoding, coding)
	}
	return nil
}

// Close frees what the decoders hold.
func (d *decoder) Close() error {
	for _, f := range d.close {
		f()
	}
	return nil
}

// newInflater reads "deflate", which is zlib by RFC 9110 and bare deflate by some servers.
func newInflater(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// normalCoding returns the name of a content coding in lower case, "" for none.
func normalCoding(coding string) string {
	switch c := strings.ToLower(strings.TrimSpace(coding)); c {
	case "identity":
		return ""
	case "x-gzip":
		return "gzip"
	default:
		return c
	}
}
