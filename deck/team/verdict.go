package team

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// A Verdict is what a worker found when it replayed a run. There is one for each run, version of tapedeck and version of the program: one that
// is found again takes the place of the older one.
type Verdict struct {
	Run      string    `json:"run"`
	Tapedeck string    `json:"tapedeck"` // the version that replayed
	Program  string    `json:"program"`  // the version of the program
	Status   string    `json:"status"`   // a word: faithful, diverged, …
	Summary  string    `json:"summary"`  // a line
	By       string    `json:"by"`       // replay, test or verify
	MS       float64   `json:"ms"`
	At       time.Time `json:"at"`
	Worker   string    `json:"worker"`
	Kernel   string    `json:"kernel"` // of the worker's machine
	Lacks    []string  `json:"lacks"`  // what the worker's jail does not cover

	Project string          `json:"-"`
	Digest  cas.Digest      `json:"-"` // of the packed recording that was replayed
	Detail  json.RawMessage `json:"-"` // all that was found, in the form of who wrote it; Verdicts leaves it out
}

// PutVerdict writes a verdict by a statement of a transaction. Nothing is written of a run that is gone, or was changed since.
func (s *Store) PutVerdict(ctx context.Context, exec func(ctx context.Context, query string, args ...any) error, v *Verdict) error {
	facts, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return exec(ctx, s.db.sql(`INSERT INTO verdicts (seq, tapedeck, program, digest, at, facts, detail)
SELECT seq, CAST(? AS TEXT), CAST(? AS TEXT), digest, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT) FROM runs WHERE project = ? AND id = ? AND digest = ?
ON CONFLICT (seq, tapedeck, program) DO UPDATE SET digest = excluded.digest, at = excluded.at, facts = excluded.facts, detail = excluded.detail`),
		v.Tapedeck, v.Program, v.At.UnixMilli(), clean(string(facts)), clean(string(v.Detail)), v.Project, v.Run, v.Digest.String())
}

// Verdicts are those of some runs of a project as they are now, the last first.
func (s *Store) Verdicts(ctx context.Context, project string, ids []string) (map[string][]Verdict, error) {
	out := make(map[string][]Verdict)
	for some := range slices.Chunk(ids, 1000) { // databases bound how many arguments there are
		args := []any{project}
		for _, id := range some {
			args = append(args, id)
		}
		err := s.db.each(ctx, s.db.db, `SELECT v.facts FROM verdicts v JOIN runs r ON r.seq = v.seq AND r.digest = v.digest
WHERE r.project = ? AND r.id IN (?`+strings.Repeat(", ?", len(some)-1)+`) ORDER BY v.at DESC`, args, func(scan func(...any) error) error {
			var facts string
			if err := scan(&facts); err != nil {
				return err
			}
			v := Verdict{Project: project}
			err := json.Unmarshal([]byte(facts), &v)
			out[v.Run] = append(out[v.Run], v)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Verdict returns that of a run by a version of tapedeck and one of the program, the last of all where both are ""; nil for none.
func (s *Store) Verdict(ctx context.Context, project, id, tapedeck, program string) (*Verdict, error) {
	var facts, detail string
	there, err := s.db.one(ctx, s.db.db, `SELECT v.facts, v.detail FROM verdicts v JOIN runs r ON r.seq = v.seq AND r.digest = v.digest
WHERE r.project = ? AND r.id = ? AND (? = '' OR v.tapedeck = ? AND v.program = ?) ORDER BY v.at DESC LIMIT 1`, []any{project, id, tapedeck, tapedeck, program}, &facts, &detail)
	if err != nil || !there {
		return nil, err
	}
	v := &Verdict{Project: project, Detail: json.RawMessage(detail)}
	return v, json.Unmarshal([]byte(facts), v)
}

// Alive says that a worker of a queue lives, and will for so long; it returns what time it is by the database's clock. A worker that says it lives
// for no time is forgotten.
func (s *Store) Alive(ctx context.Context, worker, queue string, long time.Duration) (now time.Time, err error) {
	var until int64
	_, err = s.db.one(ctx, s.db.db, "INSERT INTO workers (name, until, queue) VALUES (?, "+s.db.nowMS+" + ?, ?) ON CONFLICT (name) DO UPDATE SET until = excluded.until RETURNING until",
		[]any{worker, long.Milliseconds(), queue}, &until)
	if err == nil {
		_, err = s.db.exec(ctx, s.db.db, "DELETE FROM workers WHERE until <= "+s.db.nowMS)
	}
	return time.UnixMilli(until).Add(-long), err
}

// Workers names those that live, and the queue of each.
func (s *Store) Workers(ctx context.Context) (map[string]string, error) {
	live := make(map[string]string)
	err := s.db.each(ctx, s.db.db, "SELECT name, queue FROM workers WHERE until > "+s.db.nowMS, nil, func(scan func(...any) error) error {
		var name, queue string
		err := scan(&name, &queue)
		live[name] = queue
		return err
	})
	return live, err
}

// Pool opens connections of its own to the store's database, for a package that has tables of its own there: one of the two. SQLite has one
// writer, so its pool has one connection.
func (s *Store) Pool(ctx context.Context) (*sql.DB, *pgxpool.Pool, error) {
	if s.db.dialect == postgres {
		pool, err := pgxpool.New(ctx, s.runs)
		return nil, pool, err
	}
	u, err := url.Parse(s.runs)
	if err != nil {
		return nil, nil, err
	}
	db, err := openSQLite(pathOf(u))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, nil, err
}
