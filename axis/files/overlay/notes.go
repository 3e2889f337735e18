package overlay

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The types of a file_stat.
const (
	isFile    = "file"
	isDir     = "dir"
	isLink    = "link"
	isNone    = "none"
	isRefused = "refused"
)

// typeOf is how a look stands on a tape.
func (l *look) typeOf() string {
	switch {
	case l.barred != nil:
		return isRefused
	case l.mode.IsRegular():
		return isFile
	case l.mode.IsDir():
		return isDir
	case l.mode.IsLink():
		return isLink
	}
	return isNone
}

// What is recorded is put together and written here, never under mu. Each is called where a recorder is there.

// noteDue records what Files changed and somebody else came to see.
func (t *tree) noteDue() error {
	t.mu.Lock()
	due := t.due
	t.due = nil
	t.mu.Unlock()
	for i := range due {
		if err := t.noteOne(&due[i]); err != nil {
			return err
		}
	}
	return nil
}

// noteLinks records the links that a path passed. Whatever is recorded begins with it.
func (t *tree) noteLinks(links []link) error {
	if err := t.noteDue(); err != nil {
		return err
	}
	for _, l := range links {
		if err := t.noteRead(l.path, []byte(l.target), files.Link); err != nil {
			return err
		}
	}
	return nil
}

// noteRead records a content that was read.
func (t *tree) noteRead(path string, b []byte, m files.Mode) error {
	p, err := t.rec.Payload(b)
	if err != nil {
		return err
	}
	k := &tape.FileRead{File: tape.File{Path: path, ContentHash: p.Hash, LenBytes: p.Len, Content: p}}
	if m.IsLink() {
		k.Mode = m.Git()
	}
	return t.rec.Record(k)
}

// noteStat records what stands at a path.
func (t *tree) noteStat(p *place) error {
	if err := t.noteLinks(p.links); err != nil {
		return err
	}
	k := &tape.FileStat{Path: p.path, Type: p.typeOf()}
	if p.mode.IsRegular() {
		k.LenBytes = p.size
		if p.mode&0o100 != 0 {
			k.Mode = p.mode.Git()
		}
	}
	return t.rec.Record(k)
}

// noteList records the names in a directory.
func (t *tree) noteList(p *place, all []entry) error {
	if err := t.noteLinks(p.links); err != nil {
		return err
	}
	room, _ := rooms.Get().(*[]byte)
	if room == nil {
		room = new([]byte)
	}
	*room = appendNames((*room)[:0], all)
	names, err := t.rec.Payload(*room)
	if cap(*room) <= keptRoom {
		rooms.Put(room)
	}
	if err != nil {
		return err
	}
	return t.rec.Record(&tape.DirList{Path: p.path, NamesDigest: names.Hash, Names: names})
}

// rooms are *[]byte of at most keptRoom bytes for the lists of noteList.
var rooms sync.Pool

const keptRoom = 64 << 10

// appendNames writes a list as it stands on a tape: the names, a directory's with a slash behind it, a link's with "/@", which no
// name holds.
func appendNames(b []byte, all []entry) []byte {
	b = append(b, '[')
	for i, e := range all {
		if i > 0 {
			b = append(b, ',')
		}
		name, mark := e.name, ""
		switch {
		case e.mode.IsDir():
			mark = "/"
		case e.mode.IsLink():
			mark = "/@"
		}
		b = jsonscan.AppendText(b, name+mark)
	}
	return append(b, ']')
}

// parseNames reads what appendNames wrote, and plain lists of names.
func parseNames(b []byte) ([]entry, error) {
	var names []string
	if err := json.Unmarshal(b, &names); err != nil {
		return nil, err
	}
	out := make([]entry, 0, len(names))
	for _, name := range names {
		e := entry{name, files.Regular}
		if plain, ok := strings.CutSuffix(name, "/@"); ok {
			e = entry{plain, files.Link}
		} else if plain, ok := strings.CutSuffix(name, "/"); ok {
			e = entry{plain, files.Dir}
		}
		if checkName(e.name) == nil && !strings.Contains(e.name, "/") && e.name != "." {
			out = append(out, e)
		}
	}
	return out, nil
}

// A written is a path that was written, or removed (mode 0), with what stood there.
type written struct {
	path   string
	mode   files.Mode
	was    files.Mode // of what is removed
	data   []byte
	before []byte // nil where no file stood there; empty is a file
	spawn  uint64
}

// noteWritten records writes and removals.
func (t *tree) noteWritten(links []link, all ...written) error {
	if err := t.noteLinks(links); err != nil {
		return err
	}
	for i := range all {
		if err := t.noteOne(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// plainMode is the mode of a file of which there is no more to say.
const plainMode = "100644"

// noteOne records one of them.
func (t *tree) noteOne(w *written) error {
	file := tape.File{Path: w.path, SpawnID: w.spawn}
	if w.before != nil {
		p, err := t.rec.Payload(w.before)
		if err != nil {
			return err
		}
		file.Before = p
	}
	if w.mode == 0 {
		if w.was.Git() != plainMode {
			file.Mode = w.was.Git()
		}
		return t.rec.Record(&tape.FileDelete{File: file})
	}
	p, err := t.rec.Payload(w.data)
	if err != nil {
		return err
	}
	file.Content, file.ContentHash, file.LenBytes, file.Mode = p, p.Hash, p.Len, w.mode.Git()
	return t.rec.Record(&tape.FileWrite{File: file})
}
