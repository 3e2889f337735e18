package main

import (
	"bytes"
	"io"
	"sync"
)

// An indenter puts two spaces before each line that passes. Several goroutines may write.
type indenter struct {
	w io.Writer

	mu  sync.Mutex
	mid bool // the last byte written was not the end of a line
}

func (i *indenter) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line := rest
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			line = rest[:n+1]
		}
		rest = rest[len(line):]
		if !i.mid && len(line) > 1 {
			if _, err := io.WriteString(i.w, "  "); err != nil {
				return 0, err
			}
		}
		if _, err := i.w.Write(line); err != nil {
			return 0, err
		}
		i.mid = line[len(line)-1] != '\n'
	}
	return len(p), nil
}
