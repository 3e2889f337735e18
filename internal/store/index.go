package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // registers itself as "sqlite"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// indexVersion is the version of the tables, in PRAGMA user_version. An index of another version is made anew from the log.
const indexVersion = 1

const indexTables = `
CREATE TABLE meta (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	applied INTEGER NOT NULL, -- every entry of the log up to here is in the tables
	clean   INTEGER NOT NULL  -- whether the store was closed, and not opened since
);
INSERT INTO meta VALUES (1, 0, 0);
CREATE TABLE runs (
	first      INTEGER PRIMARY KEY, -- the log's position of its start, and so the order of starts
	key        TEXT NOT NULL UNIQUE,
	agent      TEXT NOT NULL,
	run        TEXT NOT NULL,
	intent     TEXT NOT NULL,
	started_at TEXT NOT NULL,
	ended_at   TEXT NOT NULL,
	status     TEXT NOT NULL,
	turns      INTEGER NOT NULL,
	bytes      INTEGER NOT NULL, -- of its file
	crc        INTEGER NOT NULL  -- CRC-32C of its file
);
CREATE INDEX runs_agent ON runs (agent, first);
CREATE INDEX runs_open ON runs (first) WHERE status = 'in_progress';
CREATE TABLE verdicts (
	pos     INTEGER PRIMARY KEY,
	agent   TEXT NOT NULL,
	run     TEXT NOT NULL,
	verdict TEXT NOT NULL
);
CREATE INDEX verdicts_run ON verdicts (run, pos);
PRAGMA user_version = 1;
`

// An index is the SQLite database beside the log. Whatever is in it can be made again from the log.
type index struct {
	path    string
	write   *sql.DB // one connection
	read    *sql.DB
	rebuilt string // why it began empty; "" if it did not
}

// openIndex opens the index at path. One that is missing, damaged or of another version is begun again. After an unclean end
// it is checked whole.
func openIndex(ctx context.Context, path string) (*index, error) {
	x := &index{path: path}
	var why string
	if _, err := os.Stat(path); err != nil {
		why = "there was none"
	} else if err := x.connect(); err != nil {
		why = err.Error()
	} else {
		why = x.check(ctx)
	}
	switch {
	case ctx.Err() != nil: // it says nothing about the index
		return x, ctx.Err()
	case why == "":
		return x, nil
	}
	x.close()
	x.rebuilt = why
	return x, x.create(ctx)
}

// connect opens the database, which does not look into it yet.
func (x *index) connect() (err error) {
	abs, err := filepath.Abs(x.path)
	if err != nil {
		return err
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(abs)}
	u.RawQuery = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	if x.write, err = sql.Open("sqlite", u.String()); err != nil {
		return err
	}
	x.write.SetMaxOpenConns(1)
	if x.read, err = sql.Open("sqlite", u.String()); err != nil {
		return err
	}
	x.read.SetMaxOpenConns(4)
	x.read.SetMaxIdleConns(4)
	return nil
}

// check says why the database cannot be used; "" is that it can.
func (x *index) check(ctx context.Context) string {
	var version int
	if err := x.write.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err.Error()
	}
	if version != indexVersion {
		return fmt.Sprintf("it is of version %d, this is %d", version, indexVersion)
	}
	m, err := x.meta(ctx)
	if err == nil {
		_, _, err = x.get(ctx, "")
	}
	if err == nil {
		err = x.verdicts(ctx, runtrace.ID{}, func(verdictRow) {})
	}
	if err != nil {
		return err.Error()
	}
	if m.clean {
		return ""
	}
	var result string
	if err := x.write.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); err != nil {
		return err.Error()
	}
	if result != "ok" {
		return result
	}
	return ""
}

// create begins the database again.
func (x *index) create(ctx context.Context) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(x.path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(x.path, os.O_CREATE|os.O_WRONLY, 0o600) // its mode is that of its log too
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := x.connect(); err != nil {
		return err
	}
	_, err = x.write.ExecContext(ctx, indexTables)
	return err
}

func (x *index) close() error {
	var errs []error
	for _, db := range []*sql.DB{x.read, x.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	x.read, x.write = nil, nil
	return errors.Join(errs...)
}

type meta struct {
	applied seglog.Pos
	clean   bool
}

func (x *index) meta(ctx context.Context) (m meta, err error) {
	err = x.write.QueryRowContext(ctx, "SELECT applied, clean FROM meta").Scan(&m.applied, &m.clean)
	return m, err
}

// setClean notes whether the store was closed in order.
func (x *index) setClean(ctx context.Context, clean bool) error {
	_, err := x.write.ExecContext(ctx, "UPDATE meta SET clean = ?", clean)
	return err
}

const runColumns = "key, agent, run, intent, started_at, ended_at, status, turns, bytes, crc, first"

// A row is a run in the index.
type row struct {
	key   string
	state state
	first seglog.Pos
}

func scanRow(scan func(...any) error) (r row, err error) {
	h := new(head)
	s := &r.state
	err = scan(&r.key, &h.id.Agent, &h.id.Run, &h.intent, &h.startedAt, &s.endedAt, &s.status, &s.turns, &s.bytes, &s.crc, &r.first)
	s.head = h
	return r, err
}

// get looks a run up. One that is not there is the zero state.
func (x *index) get(ctx context.Context, key string) (state, seglog.Pos, error) {
	r, err := scanRow(x.read.QueryRowContext(ctx, "SELECT "+runColumns+" FROM runs WHERE key = ?", key).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return state{}, 0, nil
	}
	return r.state, r.first, err
}

// list calls f for an agent's runs, "" all, the last started first.
func (x *index) list(ctx context.Context, agent string, f func(row) error) error {
	query, args := "SELECT "+runColumns+" FROM runs ORDER BY first DESC", []any(nil)
	if agent != "" {
		query, args = "SELECT "+runColumns+" FROM runs WHERE agent = ? ORDER BY first DESC", []any{agent}
	}
	rows, err := x.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanRow(rows.Scan)
		if err == nil {
			err = f(r)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// open are the runs that are in progress.
func (x *index) open(ctx context.Context) (ids []runtrace.ID, err error) {
	rows, err := x.read.QueryContext(ctx, "SELECT agent, run FROM runs WHERE status = 'in_progress' ORDER BY first")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id runtrace.ID
		if err := rows.Scan(&id.Agent, &id.Run); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// A verdictRow is a verdict in the index.
type verdictRow struct {
	pos     seglog.Pos
	id      runtrace.ID
	verdict string
}

// verdicts calls f for a run's verdicts, in order.
func (x *index) verdicts(ctx context.Context, id runtrace.ID, f func(verdictRow)) error {
	rows, err := x.read.QueryContext(ctx, "SELECT pos, verdict FROM verdicts WHERE run = ? AND agent = ? ORDER BY pos", id.Run, id.Agent)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		v := verdictRow{id: id}
		if err := rows.Scan(&v.pos, &v.verdict); err != nil {
			return err
		}
		f(v)
	}
	return rows.Err()
}

// save writes rows, and that the tables hold the log up to applied, at once.
func (x *index) save(ctx context.Context, rows []row, verdicts []verdictRow, applied seglog.Pos) error {
	tx, err := x.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing after a commit
	if err := saveRows(ctx, tx, rows); err != nil {
		return err
	}
	if err := saveVerdicts(ctx, tx, verdicts); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE meta SET applied = max(applied, ?)", int64(applied)); err != nil {
		return err
	}
	return tx.Commit()
}

func saveRows(ctx context.Context, tx *sql.Tx, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO runs ("+runColumns+") VALUES (?,?,?,?,?,?,?,?,?,?,?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, r := range rows {
		s := &r.state
		if _, err := insert.ExecContext(ctx, r.key, s.head.id.Agent, s.head.id.Run, s.head.intent, s.head.startedAt,
			s.endedAt, string(s.status), s.turns, s.bytes, int64(s.crc), int64(r.first)); err != nil {
			return err
		}
	}
	return nil
}

func saveVerdicts(ctx context.Context, tx *sql.Tx, verdicts []verdictRow) error {
	if len(verdicts) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, "INSERT OR IGNORE INTO verdicts VALUES (?,?,?,?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, v := range verdicts {
		if _, err := insert.ExecContext(ctx, int64(v.pos), v.id.Agent, v.id.Run, v.verdict); err != nil {
			return err
		}
	}
	return nil
}
