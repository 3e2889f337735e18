package testbench

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Input is a further input of the program that comes whole, its standard input above all: what read gives, on the tape as a file_read of
// that path. On a replay it is what the tape has there, each reading of a path the next one, and read is not called.
func (b *Bench) Input(path string, read func() ([]byte, error)) ([]byte, error) {
	if err := b.watch.gate(); err != nil {
		return nil, err
	}
	if b.from != nil {
		read = func() ([]byte, error) { return b.inputTaped(path) }
	}
	content, err := read()
	if err != nil || b.out == nil {
		return content, err
	}
	p, err := b.out.rec.Payload(content)
	if err != nil {
		return nil, err
	}
	return content, b.out.rec.Record(&tape.FileRead{File: tape.File{Path: path, ContentHash: p.Hash, LenBytes: p.Len, Content: p}})
}

// inputTaped is the next reading of path that the tape has.
func (b *Bench) inputTaped(path string) ([]byte, error) {
	b.from.mu.Lock()
	queue, known := b.from.inputs[path]
	if len(queue) > 0 {
		b.from.inputs[path] = queue[1:]
	}
	b.from.mu.Unlock()
	if len(queue) == 0 {
		asked := path + " was not read when this tape was made"
		if known {
			asked = path + " was not read once more when this tape was made"
		}
		err := &RefusedError{Axis: "files", Asked: asked, Next: "record the run again, or undo what reads it"}
		b.watch.refuse(err, func() tape.Kind { return &tape.FileRead{File: tape.File{Path: path}} })
		return nil, err
	}
	if queue[0].Content == nil {
		return nil, fmt.Errorf("testbench: the tape %s does not hold what was read of %s", b.from.path, path)
	}
	content, err := queue[0].Content.Bytes(b.from.store)
	return content, b.watch.see(err, nil)
}
