package cassette

import (
	"bytes"
	"io"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// A double shows output twice: as it is, and masked.
type double struct {
	raw           io.ReaderAt
	hits          []tty.Hit
	plain, masked *vt.Screen
	at            int64
	buf           []byte
}

func newDouble(raw io.ReaderAt, size Size, hits []tty.Hit) *double {
	return &double{raw: raw, hits: hits, plain: newScreen(size), masked: newScreen(size), buf: make([]byte, 64<<10)}
}

// show reads on up to an offset. One that is behind changes nothing.
func (d *double) show(to int64) error {
	for d.at < to {
		b := d.buf[:min(int64(len(d.buf)), to-d.at)]
		b = b[:blockEnd(d.hits, d.at, int64(len(b)))]
		n, err := d.raw.ReadAt(b, d.at)
		if n < len(b) {
			return err
		}
		d.plain.Write(b)
		m := bytes.Clone(b)
		tty.Mask(m, d.at, within(d.hits, d.at, int64(n)))
		d.masked.Write(m)
		d.at += int64(n)
	}
	return nil
}

func (d *double) resize(s sized) error {
	if err := d.show(s.offset); err != nil {
		return err
	}
	d.plain.Resize(s.size.Rows, s.size.Cols)
	d.masked.Resize(s.size.Rows, s.size.Cols)
	return nil
}
