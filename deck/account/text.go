package account

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// What Texts gives.
const (
	TextCommand = "command"      // the command line of the run
	TextSaid    = "conversation" // a prompt, an answer, the arguments or the result of a tool
	TextFile    = "file"         // the name of a file that was read or changed, each once
	TextOutput  = "output"       // what a process that the run started printed, and what it printed itself
)

// Texts gives what people look for in a recording, until f says false. Output of more than maxOutput bytes is left out.
func Texts(rec *recording.Recording, f func(what, text string) bool) error {
	if !f(TextCommand, strings.Join(rec.Manifest.Argv, " ")) {
		return nil
	}
	from, err := rec.OpenTape()
	if err != nil {
		return err
	}
	defer from.Close()
	more, files := true, make(map[string]bool)
	tell := func(what, text string) { more = more && (text == "" || f(what, text)) }
	b := NewBook(from.Store, (*llm.Prices)(nil))
	b.Said = func(text string) { tell(TextSaid, text) }
	for r, err := range from.Records() {
		if err != nil || !more {
			return err
		}
		b.Add(r)
		if file := tape.FileOf(r.Kind); file != nil && !files[file.Path] {
			files[file.Path] = true
			tell(TextFile, file.Path)
		}
		if p, ok := r.Kind.(*tape.ProcessSpawn); ok {
			tell(TextOutput, printed(from, p.Stdout))
			tell(TextOutput, printed(from, p.Stderr))
		}
	}
	return nil
}

// maxOutput bounds what is read of the output of one process, in bytes.
const maxOutput = 1 << 20

// printed is a stream as text; "" where there is none, or it cannot be read.
func printed(from *tape.Tape, p *tape.Payload) string {
	if p == nil || p.Len > maxOutput {
		return ""
	}
	b, err := p.Bytes(from.Store)
	if err != nil {
		return ""
	}
	return string(b)
}
