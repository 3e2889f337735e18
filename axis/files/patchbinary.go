package files

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
)

// binary writes both contents whole, the new one first, so that the patch can be taken back.
func (p *patchWriter) binary(old, now []byte) {
	p.w.WriteString("GIT binary patch\n")
	_ = p.literal(bytes.NewReader(now), int64(len(now)))
	_ = p.literal(bytes.NewReader(old), int64(len(old))) // a reader of bytes has no errors
}

// literal writes a content of size bytes. The error is that of r: p.w keeps its own.
func (p *patchWriter) literal(r io.Reader, size int64) error {
	fmt.Fprintf(p.w, "literal %d\n", size)
	l := &base85Lines{w: p.w}
	z := zlib.NewWriter(l)
	if _, err := io.Copy(z, r); err != nil {
		return err
	}
	z.Close()
	l.flush()
	p.w.WriteByte('\n')
	return nil
}

// base85Lines writes bytes as Git does in a binary patch: up to 52 a line, a letter for their number (A to Z, a to z)
// and five digits of base 85 for each four, the last filled up with zeros.
type base85Lines struct {
	w   *bufio.Writer
	buf [52]byte
	n   int
}

const base85Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// Write implements io.Writer. It never fails: the buffered writer below keeps its error.
func (l *base85Lines) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		n := copy(l.buf[l.n:], b[done:])
		done += n
		if l.n += n; l.n == len(l.buf) {
			l.flush()
		}
	}
	return len(b), nil
}

// flush ends the line, where one has begun.
func (l *base85Lines) flush() {
	if l.n == 0 {
		return
	}
	if l.n <= 26 {
		l.w.WriteByte(byte('A' + l.n - 1))
	} else {
		l.w.WriteByte(byte('a' + l.n - 27))
	}
	clear(l.buf[l.n:])
	for i := 0; i < l.n; i += 4 {
		l.word(uint32(l.buf[i])<<24 | uint32(l.buf[i+1])<<16 | uint32(l.buf[i+2])<<8 | uint32(l.buf[i+3]))
	}
	l.w.WriteByte('\n')
	l.n = 0
}

func (l *base85Lines) word(v uint32) {
	var digits [5]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = base85Digits[v%85]
		v /= 85
	}
	l.w.Write(digits[:])
}
