package foreign

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// database reads a session out of opencode's database: that of the id, or where that is "" the one that changed last and is no
// sub-agent's. The file is never changed: it is opened as one that nobody writes, and where it has a log of writes beside it, a copy
// of the two in a folder of its own is read.
func (o *opencodeReader) database(ctx context.Context, path, id string) error {
	db, done, err := openDatabase(o.r, path)
	if err != nil {
		return err
	}
	defer done()
	var all []opencodeInfo
	rows, err := db.QueryContext(ctx, `SELECT id, coalesce(parent_id, ''), version, time_updated, coalesce(revert, '') FROM session`)
	if err != nil {
		return &Error{Path: path, Err: fmt.Errorf("expected opencode's database: %w", err)}
	}
	defer rows.Close()
	for rows.Next() {
		var info opencodeInfo
		var revert string
		if err := rows.Scan(&info.ID, &info.Parent, &info.Version, &info.Time.Updated, &revert); err != nil {
			return &Error{Path: path, Err: err}
		}
		if decode([]byte(revert), &info.Revert) != nil {
			info.Revert.Message = "" // there is none
		}
		all = append(all, info)
	}
	if err := rows.Err(); err != nil {
		return &Error{Path: path, Err: err}
	}
	session, err := o.r.choose(all, id)
	if err != nil {
		return err
	}
	o.open(session)
	return o.rows(ctx, db, path)
}

// rows reads the messages of the session that was chosen, and their parts. Memory is one message and one part.
func (o *opencodeReader) rows(ctx context.Context, db *sql.DB, path string) error {
	fail := func(err error) error { return &Error{Path: path, Err: err} }
	parts, err := db.PrepareContext(ctx, `SELECT id, octet_length(data), iif(octet_length(data) <= ?1, data, '')
		FROM part WHERE message_id = ?2 ORDER BY id`)
	if err != nil {
		return fail(err)
	}
	defer parts.Close()
	messages, err := db.QueryContext(ctx, `SELECT id, octet_length(data), iif(octet_length(data) <= ?1, data, '')
		FROM message WHERE session_id = ?2 ORDER BY time_created, id`, MaxLine, o.r.Session)
	if err != nil {
		return fail(err)
	}
	err = eachRow(messages, path, func(id string, b []byte) error {
		o.r.Lines++
		o.id = id
		more, err := o.message(b)
		if err != nil || !more {
			return err
		}
		rows, err := parts.QueryContext(ctx, MaxLine, id)
		if err != nil {
			return fail(err)
		}
		if err := eachRow(rows, path, func(_ string, b []byte) error { return o.parts(b) }); err != nil {
			return err
		}
		o.messageEnd()
		return o.failed
	})
	if other := 0; err == nil && o.r.Lines == 0 {
		row := db.QueryRowContext(ctx, `SELECT count(*) FROM session_message WHERE session_id = ?`, o.r.Session)
		if row.Scan(&other) == nil && other > 0 { // a table that newer versions have, and did not use when this was written
			o.r.skip("rows of the table session_message", "unknown", 0)
			o.r.note("the session's %d messages stand in a form that is not known here", other)
		}
	}
	return err
}

// eachRow gives the JSON of rows {id, length, data} to each. Its memory is borrowed.
func eachRow(rows *sql.Rows, path string, each func(id string, b []byte) error) error {
	defer rows.Close()
	for rows.Next() {
		var id string
		var size int64
		var data sql.RawBytes
		err := rows.Scan(&id, &size, &data)
		if err == nil && size > MaxLine {
			err = fmt.Errorf("expected at most %d bytes, got %d", MaxLine, size)
		}
		if err == nil {
			err = jsonscan.Valid(data)
		}
		if err != nil {
			return &Error{Path: path, Err: fmt.Errorf("%s: %w", id, err)}
		}
		if err := each(id, data); err != nil {
			if fault, ok := errors.AsType[broken](err); ok {
				return &Error{Path: path, Err: fmt.Errorf("%s: %w", id, fault.error)}
			}
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return &Error{Path: path, Err: err}
	}
	return nil
}

// DriverName is what the driver is called that databases are read with. Package foreign/sqlite registers one.
const DriverName = "sqlite"

// errNoDriver says that the program has none.
var errNoDriver = errors.New("this program has no driver for SQLite: it is to import sessionlog/foreign/sqlite")

// openDatabase opens a database to be read. done closes it and removes the copy, if one was made.
func openDatabase(r *Report, path string) (db *sql.DB, done func(), err error) {
	if !slices.Contains(sql.Drivers(), DriverName) {
		return nil, nil, &Error{Path: path, Err: errNoDriver}
	}
	done = func() {}
	query := "mode=ro&immutable=1"
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		dir, err := os.MkdirTemp("", "tapedeck-import-")
		if err != nil {
			return nil, nil, err
		}
		done = func() { os.RemoveAll(dir) }
		same, err := copyDatabase(path, dir)
		if err != nil {
			done()
			return nil, nil, err
		}
		if !same {
			r.note("the database was written to while it was copied: the session may lack its end")
		}
		path, query = filepath.Join(dir, opencodeDB), "mode=rw"
	}
	absolute, err := filepath.Abs(path)
	if err == nil {
		absolute = "/" + strings.TrimPrefix(filepath.ToSlash(absolute), "/") // before the letter of a drive too
		db, err = sql.Open(DriverName, (&url.URL{Scheme: "file", Path: absolute, RawQuery: query}).String())
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	db.SetMaxOpenConns(2) // messages, and the parts of one
	remove := done
	return db, func() { db.Close(); remove() }, nil
}

// copyDatabase copies a database and its log of writes, and once more where they changed meanwhile. same is false where they
// never stood still.
func copyDatabase(path, dir string) (same bool, err error) {
	for range 3 {
		before := stamp(path)
		for _, end := range []string{"", "-wal"} {
			if err := copyFile(path+end, filepath.Join(dir, opencodeDB+end)); err != nil {
				return false, err
			}
		}
		if stamp(path) == before {
			return true, nil
		}
	}
	return false, nil
}

// stamp is what changes with a database.
func stamp(path string) (s [2]struct {
	at   time.Time
	size int64
}) {
	for i, end := range []string{"", "-wal"} {
		if info, err := os.Stat(path + end); err == nil {
			s[i].at, s[i].size = info.ModTime(), info.Size()
		}
	}
	return s
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

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
	var all []opencodeInfo
	for _, file := range files {
		b, err := readJSON(file)
		if err != nil {
			return err
		}
		info := opencodeInfo{file: file}
		if err := decode(b, &info); err != nil {
			return &Error{Path: file, Err: err}
		}
		all = append(all, info)
	}
	session, err := o.r.choose(all, id)
	if err != nil {
		return err
	}
	return o.file(ctx, session.file)
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
		err = eachJSON(ctx, filepath.Join(storage, "part", name), func(_ string, b []byte) error { return o.parts(b) })
		if err != nil {
			return err
		}
		o.messageEnd()
		return o.failed
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

// maxNamed is how many sessions are named where there is a choice.
const maxNamed = 8

// choose returns the session of an id, or where that is "" the one that changed last and is no sub-agent's, which it says.
func (r *Report) choose(all []opencodeInfo, id string) (*opencodeInfo, error) {
	slices.SortFunc(all, func(a, b opencodeInfo) int {
		return cmp.Or(-cmp.Compare(a.Time.Updated, b.Time.Updated), strings.Compare(a.ID, b.ID))
	})
	at := slices.IndexFunc(all, func(i opencodeInfo) bool { return i.ID == id || id == "" && i.Parent == "" })
	if id == "" && len(all) > 0 {
		at = max(at, 0)
	}
	var others []string
	for i := range all[:min(len(all), maxNamed)] {
		if i != at {
			others = append(others, all[i].ID)
		}
	}
	if len(all) > maxNamed {
		others = append(others, "…")
	}
	names := strings.Join(others, ", ")
	switch {
	case len(all) == 0:
		return nil, &Error{Path: r.File, Err: fmt.Errorf("%w: no session in it", ErrEmpty)}
	case at < 0:
		return nil, &Error{Path: r.File, Err: fmt.Errorf("no session %s in it; it has %s", id, names)}
	case len(all) > 1 && id == "":
		r.note("%s is the newest of %d sessions here; PATH#SESSION reads another one: %s", all[at].ID, len(all), names)
	}
	return &all[at], nil
}
