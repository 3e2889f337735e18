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
)

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
	return decode(contentEncoding, body, limit, false)
}

// DecodeCut is Decode; of a body that was cut it returns what decodes.
func DecodeCut(contentEncoding string, body []byte, limit int64, cut bool) ([]byte, error) {
	return decode(contentEncoding, body, limit, cut)
}

// decode is Decode; of a body that was cut it returns what decodes.
func decode(contentEncoding string, body []byte, limit int64, cut bool) ([]byte, error) {
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
