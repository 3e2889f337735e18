package page

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/cassette/picture"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// terminalOf makes terminal.json. The times of a recording's terminal are those of its tape.
func terminalOf(rec *recording.Recording) (*Terminal, error) {
	t, err := rec.OpenTerminal()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, ErrNoDocument
	}
	defer t.Close()
	var b bytes.Buffer
	if err := picture.Records(&b, t, &picture.Options{MaxIdle: -1}); err != nil {
		return nil, err
	}
	events := bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte("\n"), []byte(",\n")) // no record has a line break in it
	out := &Terminal{Events: append(append([]byte("["), events...), ']')}
	m := t.Manifest().Terminal
	out.Cols, out.Rows = m.InitialCols, m.InitialRows
	return out, nil
}
