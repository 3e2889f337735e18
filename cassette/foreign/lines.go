package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// lines reads lines of at most MaxData bytes.
type lines struct{ *jsonscan.Lines }

func newLines(r io.Reader) lines { return lines{jsonscan.NewLines(r, MaxData)} }

// next returns the next line without its end, valid until the next call; io.EOF after the last.
func (l lines) next() ([]byte, error) {
	b, err := l.Next()
	var long *jsonscan.LongLineError
	if errors.As(err, &long) {
		err = fmt.Errorf("a line of more than %d MiB", MaxData>>20)
	}
	return trimEnd(b), err
}

func trimEnd(b []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
}
