package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// opencodeStorage is the folder of the files that opencode wrote before it had a database, in path or path itself; "" for none.
func opencodeStorage(path string) string {
	for _, dir := range []string{filepath.Join(path, "storage"), path} {
		session, err := os.Stat(filepath.Join(dir, "session"))
		message, err2 := os.Stat(filepath.Join(dir, "message"))
		if err == nil && err2 == nil && session.IsDir() && message.IsDir() {
			return dir
		}
	}
	return ""
}

// folder reads a session out of session/<project>/<session>.json, message/<session>/<message>.json and
// part/<message>/<part>.json: that of the id, or where that is "" the one that changed last and is no sub-agent's.
func (o *opencodeReader) folder(ctx context.Context, storage, id string) error {
	files, err := filepath.Glob(filepath.Join(globEscape(storage), "session", "*", "ses_*.json"))
	if err != nil {
		return err
	}
	pick := newPicker(id)
	for _, file := range files {
		b, err := readJSON(file)
		if err != nil {
			return err
		}
		var info opencodeInfo
		if err := decode(b, &info); err != nil {
			return &Error{Path: file, Err: err}
		}
		pick.offer(&info, file)
	}
	if pick.best == nil {
		return &Error{Path: storage, Err: pick.none()}
	}
	pick.say(o.r)
	return o.file(ctx, pick.file)
}

// file reads a session's file and what belongs to it.
func (o *opencodeReader) file(ctx context.Context, path string) error {
	b, err := readJSON(path)
	if err != nil {
		return err
	}
	o.r.File = path
	var info opencodeInfo
	if err := decode(b, &info); err != nil {
		return err
	}
	o.open(&info)
	if !opencodeID.MatchString(o.r.Session) {
		return &Error{Path: path, Err: fmt.Errorf("expected an id like ses_…, got %q", o.r.Session)}
	}
	storage := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	return eachJSON(ctx, filepath.Join(storage, "message", o.r.Session), func(name string, b []byte) error {
		o.r.Lines++
		more, err := o.message(b)
		if err != nil || !more {
			return err
		}
		err = eachJSON(ctx, filepath.Join(storage, "part", name), func(_ string, b []byte) error { return each(b, o.part) })
		if err != nil {
			return err
		}
		return o.messageEnd()
	})
}

// eachJSON gives the files of a folder to each, in the order of their ids, which is that of time. One that is empty, as a crash leaves
// it, is an error as any other that is broken: a whole file was lost. A folder that is not there holds none.
func eachJSON(ctx context.Context, dir string, each func(name string, b []byte) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !opencodeID.MatchString(name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(dir, e.Name())
		b, err := readJSON(path)
		if err != nil {
			return err
		}
		if err := each(name, b); err != nil {
			if fault, ok := errors.AsType[broken](err); ok {
				return &Error{Path: path, Err: fault.error}
			}
			return err
		}
	}
	return nil
}

// readJSON reads a file of one value.
func readJSON(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxLine+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxLine {
		return nil, &Error{Path: path, Err: fmt.Errorf("expected at most %d bytes", MaxLine)}
	}
	if err := jsonscan.Valid(b); err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	return b, nil
}

// globEscape makes a pattern that matches a path alone.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// A picker chooses a session among several.
type picker struct {
	id       string // the one that is wanted, "" for the newest
	best     *opencodeInfo
	file     string
	sessions []opencodeInfo // the newest few
	n        int
}

func newPicker(id string) *picker { return &picker{id: id} }

// maxNamed is how many sessions are named where there is a choice.
const maxNamed = 8

func (p *picker) offer(info *opencodeInfo, file string) {
	p.n++
	p.sessions = append(p.sessions, *info)
	slices.SortFunc(p.sessions, func(a, b opencodeInfo) int {
		return cmp.Or(-cmp.Compare(a.Time.Updated, b.Time.Updated), strings.Compare(a.ID, b.ID))
	})
	p.sessions = p.sessions[:min(len(p.sessions), maxNamed)]
	own := *info
	switch {
	case p.id != "":
		if info.ID == p.id {
			p.best, p.file = &own, file
		}
	case p.best == nil, p.best.Parent != "" && info.Parent == "",
		(p.best.Parent == "") == (info.Parent == "") && info.Time.Updated > p.best.Time.Updated:
		p.best, p.file = &own, file
	}
}

// none says why there is no session.
func (p *picker) none() error {
	if p.n == 0 {
		return fmt.Errorf("%w: no session in it", ErrEmpty)
	}
	return fmt.Errorf("no session %s in it; it has %s", p.id, p.names(""))
}

// names lists the newest sessions but one.
func (p *picker) names(but string) string {
	var names []string
	for _, s := range p.sessions {
		if s.ID != but {
			names = append(names, s.ID)
		}
	}
	text := strings.Join(names, ", ")
	if p.n > len(p.sessions) {
		text += ", …"
	}
	return text
}

// say tells the report which session was chosen.
func (p *picker) say(r *Report) {
	if p.n > 1 && p.id == "" {
		r.note("%s is the newest of %d sessions here; PATH#SESSION reads another one: %s", p.best.ID, p.n, p.names(p.best.ID))
	}
}
