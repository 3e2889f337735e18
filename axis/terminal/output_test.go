package terminal

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
)

// reads is a terminal's side whose reads are written down.
type reads []any

func (r *reads) Read(b []byte) (int, error) {
	next := (*r)[0]
	if *r = (*r)[1:]; len(*r) == 0 {
		*r = reads{io.ErrUnexpectedEOF} // one read too many
	}
	if err, ok := next.(error); ok {
		return 0, err
	}
	return copy(b, next.(string)), nil
}

func (r *reads) Close() error { return nil }

// TestLastBytes has bytes come after the first EIO, as happens where the reader was held up between the kernel's two looks.
func TestLastBytes(t *testing.T) {
	for _, side := range []reads{
		{"ab", "c", syscall.EIO, syscall.EIO},
		{"ab", syscall.EIO, "c", syscall.EIO, syscall.EIO},
	} {
		var got bytes.Buffer
		_, err := io.Copy(&got, &output{master: &side})
		if !errors.Is(err, syscall.EIO) || got.String() != "abc" {
			t.Errorf("%q, %v", got.String(), err)
		}
	}
}
