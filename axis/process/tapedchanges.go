package process

import (
	"fmt"
	"io/fs"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// change is a record of a file that a command changed.
type change struct {
	path    string
	file    *tape.File
	deleted bool
}

// changed takes the record of a file. One that names no spawn is the program's own doing.
func (t *Taped) changed(rec *tape.Record, f *tape.File) {
	if f.SpawnID == 0 || f.IsPlace() {
		return
	}
	_, deleted := rec.Kind.(*tape.FileDelete)
	c := change{path: f.Path, file: f, deleted: deleted}
	for _, raw := range rec.Raw {
		if raw.Key == "path" {
			c.path = string(raw.Bytes)
		}
	}
	t.changes[f.SpawnID] = append(t.changes[f.SpawnID], c)
}

// changesOf lists what a recorded command changed. A file without its content on the tape is an error: what reads it later cannot be
// answered.
func (t *Taped) changesOf(s *spawn) ([]Change, error) {
	if s.kind.SpawnID == 0 {
		return nil, nil
	}
	var out []Change
	for _, c := range t.changes[s.kind.SpawnID] {
		if c.deleted {
			out = append(out, Change{Path: c.path, Deleted: true})
			continue
		}
		content := c.file.Content
		if content == nil {
			content = tape.PayloadOf(c.file.ContentHash, c.file.LenBytes)
		}
		b, err := content.Bytes(t.store)
		if err != nil {
			return nil, fmt.Errorf("%s, which it wrote: %w", c.path, err)
		}
		if c.file.Mode == linkMode {
			out = append(out, Change{Path: c.path, Target: string(b)})
			continue
		}
		out = append(out, Change{Path: c.path, Content: b, Perm: permOfMode(c.file.Mode)})
	}
	return out, nil
}

// linkMode is the mode of a symbolic link as Git writes it.
const linkMode = "120000"

// permOfMode is the permission of a mode.
func permOfMode(mode string) fs.FileMode {
	if n, err := strconv.ParseUint(mode, 8, 32); err == nil {
		return fs.FileMode(n).Perm()
	}
	return 0o644
}
