package team

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers itself as "pgx"
	_ "modernc.org/sqlite"             // registers itself as "sqlite"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A dialect is what SQLite and PostgreSQL say differently. Queries have ? for their arguments.
type dialect struct {
	numbered  bool     // arguments are $1, $2, …
	lock      string   // has migrations run one after the other
	now       string   // seconds since 1970, by the database's clock
	nowMS     string   // ms, likewise
	at        string   // the place of a text t: its run's number, then its own
	matches   string   // whether a text t has all words of an argument
	quote     string   // around each word of that argument
	matchesAt string   // the same of texts that are found by their places
	recent    int64    // so many runs that were pushed last are looked through for words that most texts have, 0 for none
	order     string   // that of places, behind those
	plan      string   // before a search, in its transaction; "" for nothing
	rewrite   []string // what takes away what removed rows leave behind, outside of a transaction
	busy      string   // empties the journal too, and says by a number that is not 0 that somebody reads it; "" for none
	schema    []string // migrations from version 0 on
}

var sqlite = &dialect{
	now: "CAST(strftime('%s', 'now') AS INTEGER)", nowMS: "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)", at: "t.rowid", matches: "t.texts MATCH ?", matchesAt: "t.texts MATCH ?", quote: `"`, order: "t.rowid",
	busy: "PRAGMA wal_checkpoint(TRUNCATE)",
	schema: []string{tables("INTEGER PRIMARY KEY", "TEXT") + `
CREATE VIRTUAL TABLE texts USING fts5(body, what UNINDEXED, tokenize = "unicode61 remove_diacritics 0");
INSERT INTO texts(texts, rank) VALUES ('secure-delete', 1);
`, verdictTables, retentionTables("json_extract(facts, '$.size')"), accessTables("INTEGER PRIMARY KEY", sqliteGrows)},
}

var postgres = &dialect{
	numbered: true, lock: "SELECT pg_advisory_xact_lock(7493218807)", now: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)",
	nowMS: "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", at: "t.place", matches: "t.words @@ plainto_tsquery('simple', ?)", recent: 2000,
	matchesAt: "(t.words || '') @@ plainto_tsquery('simple', ?)",
	order:     "(t.place + 0)",                                                                                                                // no index has it: PostgreSQL takes that of words then, not that of places with each word to be looked for
	plan:      "SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL max_parallel_workers_per_gather = 0", // how many texts have a word depends on the word; to start a process takes longer than a search
	rewrite:   []string{"VACUUM FULL texts", "VACUUM FULL runs", "VACUUM FULL verdicts", "VACUUM FULL tags", "VACUUM FULL holds"},
	schema: []string{tables("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", `TEXT COLLATE "C"`) + `
CREATE TABLE texts (place BIGINT PRIMARY KEY, what TEXT NOT NULL, body TEXT NOT NULL, words TSVECTOR NOT NULL);
CREATE INDEX texts_words ON texts USING gin (words);
`, verdictTables, retentionTables("(CAST(facts AS JSON) ->> 'size')"), accessTables("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", postgresGrows)},
}

// tables are those that both have, given what makes a number for each new row, and a text that is ordered by its bytes.
func tables(number, bytewise string) string {
	return `
CREATE TABLE runs (
	seq     ` + number + `,  -- the order in which they were pushed
	project TEXT NOT NULL,
	id      ` + bytewise + ` NOT NULL,
	digest  TEXT NOT NULL,   -- of the packed recording
	started BIGINT NOT NULL, -- ms since 1970
	agent   TEXT NOT NULL,   -- the program, without its directory
	models  TEXT NOT NULL,   -- names, each between two newlines
	failed  BIGINT NOT NULL, -- 0, or 1 where it did not end with 0
	cost    DOUBLE PRECISION NOT NULL, -- USD, as far as it is known
	facts   TEXT NOT NULL,   -- a Run as JSON
	UNIQUE (project, id)
);
CREATE INDEX runs_project ON runs (project, seq);
CREATE INDEX runs_agent ON runs (project, agent, seq);
CREATE INDEX runs_failed ON runs (project, failed, seq);
CREATE INDEX runs_digest ON runs (digest);
CREATE TABLE blobs ( -- that this database brought
	digest TEXT PRIMARY KEY,
	owner  TEXT NOT NULL,  -- who puts or deletes it now; '' for nobody
	at     BIGINT NOT NULL -- when that one gave a sign, in seconds
);
CREATE TABLE tombstones (
	project TEXT NOT NULL,
	id      TEXT NOT NULL,
	digest  TEXT NOT NULL,
	note    TEXT NOT NULL -- a signed note
);
CREATE INDEX tombstones_run ON tombstones (project, id);
`
}

// verdictTables are those that workers write: what they found, and that they are alive.
const verdictTables = `
CREATE TABLE verdicts (
	seq      BIGINT NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
	tapedeck TEXT NOT NULL,   -- the version that replayed
	program  TEXT NOT NULL,   -- the version of what was replayed
	digest   TEXT NOT NULL,   -- of the packed recording that was
	at       BIGINT NOT NULL, -- ms since 1970
	facts    TEXT NOT NULL,   -- a Verdict as JSON
	detail   TEXT NOT NULL,   -- its Detail
	PRIMARY KEY (seq, tapedeck, program)
);
CREATE TABLE workers (
	name  TEXT PRIMARY KEY,
	until BIGINT NOT NULL, -- when it is dead unless it gave a sign, in ms
	queue TEXT NOT NULL
);
`

// retentionTables are those that say which runs stay and which go, given where a row has its size. A hold has no ON DELETE: whoever removes a run
// that is on hold is refused by the database, be it a tapedeck that does not know of holds.
func retentionTables(size string) string {
	return `
ALTER TABLE runs ADD COLUMN size BIGINT NOT NULL DEFAULT 0; -- of the packed recording, in bytes
UPDATE runs SET size = CAST(COALESCE(` + size + `, '0') AS BIGINT);
CREATE INDEX runs_started ON runs (project, started, seq);
CREATE TABLE tags (
	project TEXT NOT NULL,
	tag     TEXT NOT NULL,
	seq     BIGINT NOT NULL REFERENCES runs (seq) ON DELETE CASCADE,
	PRIMARY KEY (project, tag, seq)
);
CREATE INDEX tags_run ON tags (seq);
CREATE TABLE holds (
	seq   BIGINT PRIMARY KEY REFERENCES runs (seq),
	facts TEXT NOT NULL -- a Hold as JSON
);
`
}

// A database is one of the two. It may be used by several goroutines.
type database struct {
	*dialect
	db *sql.DB
}

// A query is what both a database and a transaction of it can do.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// idleConns stay open for those that come next: to open one takes PostgreSQL longer than a push.
const idleConns = 8

// openDatabase opens what sqlite:///PATH or postgres://… names, and brings its tables up to date.
func openDatabase(ctx context.Context, address string) (*database, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("--store: no URL; want sqlite:///PATH or postgres://USER@HOST/DATABASE") // the URL may hold a password
	}
	d := &database{}
	switch path := pathOf(u); {
	case u.Scheme == "sqlite" && path != "":
		d.dialect = sqlite
		d.db, err = openSQLite(path)
	case u.Scheme == "postgres" || u.Scheme == "postgresql":
		d.dialect = postgres
		d.db, err = sql.Open("pgx", address)
	default:
		return nil, fmt.Errorf("--store %s: want sqlite:///PATH or postgres://USER@HOST/DATABASE", shown(u))
	}
	if err == nil {
		d.db.SetMaxIdleConns(idleConns)
		if err = d.migrate(ctx); err != nil {
			d.db.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--store %s: %w", shown(u), err)
	}
	return d, nil
}

func openSQLite(path string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(abs)}
	u.RawQuery = "_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)&_pragma=foreign_keys(ON)"
	return sql.Open("sqlite", u.String())
}

// migrate brings the tables to the version that this package knows.
func (d *database) migrate(ctx context.Context) error {
	var have int
	if _, err := d.one(ctx, d.db, "SELECT COALESCE(MAX(version), 0) FROM tapedeck_schema", nil, &have); err == nil && have == len(d.schema) {
		return nil // who may only read can
	}
	return d.within(ctx, func(tx *sql.Tx) error {
		if d.lock != "" {
			if _, err := tx.ExecContext(ctx, d.lock); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS tapedeck_schema (version BIGINT NOT NULL)"); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM tapedeck_schema").Scan(&have); err != nil {
			return err
		}
		if have > len(d.schema) {
			return fmt.Errorf("its tables are of version %d and this tapedeck knows %d: use the newer one", have, len(d.schema))
		}
		for ; have < len(d.schema); have++ {
			if _, err := tx.ExecContext(ctx, d.schema[have]); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, d.sql("INSERT INTO tapedeck_schema VALUES (?)"), have+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// sql is a query as the database takes it.
func (d *dialect) sql(query string) string {
	if !d.numbered {
		return query
	}
	parts := strings.Split(query, "?")
	for i := range parts[1:] {
		parts[i] += "$" + strconv.Itoa(i+1)
	}
	return strings.Join(parts, "")
}

// within runs f in a transaction, which is over when it returns.
func (d *database) within(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// exec runs a statement and says how many rows it touched.
func (d *dialect) exec(ctx context.Context, on querier, query string, args ...any) (int64, error) {
	res, err := on.ExecContext(ctx, d.sql(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// one reads one row; it says whether there is one.
func (d *dialect) one(ctx context.Context, on querier, query string, args []any, to ...any) (bool, error) {
	err := on.QueryRowContext(ctx, d.sql(query), args...).Scan(to...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// asking is nil but in tests, which have queries explained.
var asking func(query string, args []any)

// each gives rows to f, which scans them.
func (d *dialect) each(ctx context.Context, on querier, query string, args []any, f func(scan func(...any) error) error) error {
	if asking != nil {
		asking(query, args)
	}
	rows, err := on.QueryContext(ctx, d.sql(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ErrRead is returned where SQLite's journal could not be emptied of what was removed.
var ErrRead = errors.New("somebody else is reading the database, so its journal still holds what was removed: run the command again")

// cleanse takes away what removed rows have left in the database's files.
func (d *database) cleanse(ctx context.Context) error {
	for _, statement := range d.rewrite {
		if _, err := d.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// emptyJournal takes away what removed rows have left in SQLite's, which overwrites them elsewhere as it removes them.
func (d *database) emptyJournal(ctx context.Context) error {
	if d.busy == "" {
		return nil
	}
	var busy, pages, done int
	if _, err := d.one(ctx, d.db, d.busy, nil, &busy, &pages, &done); err != nil {
		return err
	}
	if busy != 0 {
		return ErrRead
	}
	return nil
}

// ClaimAge is how long a claim lives that nobody renews.
const ClaimAge = time.Minute

const (
	renewEvery = ClaimAge / 4
	claimAgain = 50 * time.Millisecond // between two tries
)

// errLost is returned by a transaction whose claim somebody else has taken over.
var errLost = errors.New("this took so long without a sign that somebody else went on in its place: run the command again")

// A claim is that of a blob, which nobody else puts or deletes meanwhile.
type claim struct {
	db     *database
	digest cas.Digest
	owner  string
	ctx    context.Context // done where the claim may be lost
	stop   context.CancelCauseFunc
}

// claim waits until nobody else has the blob.
func (d *database) claim(ctx context.Context, digest cas.Digest) (*claim, error) {
	for {
		c, err := d.tryClaim(ctx, digest)
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(claimAgain):
		}
	}
}

// tryClaim returns nil where somebody else has the blob.
func (d *database) tryClaim(ctx context.Context, digest cas.Digest) (*claim, error) {
	c := &claim{db: d, digest: digest, owner: rand.Text()}
	n, err := d.exec(ctx, d.db, "INSERT INTO blobs (digest, owner, at) VALUES (?, ?, "+d.now+") ON CONFLICT (digest) DO UPDATE"+
		" SET owner = excluded.owner, at = excluded.at WHERE blobs.owner = '' OR blobs.at < "+d.now+" - ?", digest.String(), c.owner, int(ClaimAge.Seconds()))
	if err != nil || n == 0 {
		return nil, err
	}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	go c.renew()
	return c, nil
}

// renew says now and then that somebody is still at work, and ends the work where that cannot be said in time.
func (c *claim) renew() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		switch err := c.hold(c.ctx); {
		case err == nil:
			last = time.Now()
		case errors.Is(err, errLost), time.Since(last) > ClaimAge/2:
			c.stop(errLost)
		}
	}
}

// hold renews the claim; errLost says that somebody else has it.
func (c *claim) hold(ctx context.Context) error {
	return c.set(ctx, c.db.db, "UPDATE blobs SET at = "+c.db.now+" WHERE digest = ? AND owner = ?")
}

// end gives the claim up within a transaction; errLost undoes that.
func (c *claim) end(ctx context.Context, on querier) error {
	return c.set(ctx, on, "UPDATE blobs SET owner = '' WHERE digest = ? AND owner = ?")
}

// set changes the row of the claim.
func (c *claim) set(ctx context.Context, on querier, statement string) error {
	n, err := c.db.exec(ctx, on, statement, c.digest.String(), c.owner)
	if err == nil && n == 0 {
		err = errLost
	}
	return err
}

// release gives the claim up, if it is still held. A claim that cannot be given up dies of age.
func (c *claim) release() {
	c.stop(nil)
	ctx, stop := context.WithTimeout(context.Background(), renewEvery)
	defer stop()
	_ = c.end(ctx, c.db.db)
}

// cause is why something failed that the claim's end may have ended.
func (c *claim) cause(err error) error {
	if err != nil && errors.Is(context.Cause(c.ctx), errLost) {
		return errLost
	}
	return err
}
