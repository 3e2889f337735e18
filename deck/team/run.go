package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A Run is what the store knows of a recording.
type Run struct {
	ID        string            `json:"id"`
	Project   string            `json:"project"`
	State     string            `json:"state"`
	StartedAt time.Time         `json:"started_at"`
	Agent     string            `json:"agent"` // the program, without its directory
	Argv      []string          `json:"argv"`
	Exit      *recording.Exit   `json:"exit"`
	Totals    *recording.Totals `json:"totals"`
	Verdict   *library.Verdict  `json:"verdict"` // of the last replay before it was pushed
	Parent    *string           `json:"parent"`
	ForkSeq   *uint64           `json:"fork_seq"`
	Host      string            `json:"host"`
	Tapedeck  string            `json:"tapedeck"` // that recorded it
	Sealed    bool              `json:"sealed"`
	Digest    cas.Digest        `json:"digest"` // of the packed recording
	Size      int64             `json:"size"`   // of that, in bytes
	Table     cas.Digest        `json:"table"`  // of its table, by which what is read of its middle is checked; zeros for none
	PushedAt  time.Time         `json:"pushed_at"`
	Unlisted  bool              `json:"unlisted_text"` // it has more texts than are searched
	Tags      []string          `json:"tags"`
	Hold      *Hold             `json:"hold"` // nil where it is on none

	row int // bytes of it in the database
}

// runOf is what a recording says of itself.
func runOf(rec *recording.Recording, project string) *Run {
	m := rec.Manifest
	return &Run{
		ID: m.ID, Project: project, State: m.State, StartedAt: m.StartedAt, Agent: filepath.Base(m.Argv[0]), Argv: shortened(m.Argv), Exit: m.Exit, Totals: m.Totals,
		Verdict: library.VerdictOf(rec), Parent: m.Parent, ForkSeq: m.ForkSeq, Host: m.Host.Name, Tapedeck: m.Versions.Tapedeck, Sealed: m.Sealed,
	}
}

// The bounds of a row, in bytes: of the command line, whose rest is in the recording, and of all of it.
const (
	maxArgv  = 16 << 10
	maxFacts = 64 << 10
)

// shortened are the first arguments, as many as a list can do with.
func shortened(argv []string) []string {
	left := maxArgv
	for i, arg := range argv {
		if left -= len(arg) + 1; left < 0 {
			cut := strings.ToValidUTF8(arg[:len(arg)+max(left, -len(arg))], "")
			return append(slices.Clone(argv[:i]), cut+"…")
		}
	}
	return argv
}

// A runTable has the rows of runs, and what goes with them: their texts, tags and holds, and the tombstones of those that were.
type runTable struct{ *database }

// put adds the row of a run, or replaces that of the same id, and returns its number.
func (d *runTable) put(ctx context.Context, tx querier, r *Run) (seq int64, err error) {
	var models []string
	var cost float64
	if r.Totals != nil {
		models, cost = r.Totals.Models, r.Totals.PricedUSD
	}
	facts, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	if len(facts) > maxFacts {
		return 0, fmt.Errorf("%w: what it says of itself is longer than %d bytes", ErrUnfit, maxFacts)
	}
	failed := 0
	if r.Exit == nil || r.Exit.Code != 0 || r.Exit.Signal != "" {
		failed = 1
	}
	_, err = d.one(ctx, tx, `INSERT INTO runs (project, id, digest, started, agent, models, failed, cost, size, facts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (project, id) DO UPDATE SET digest = excluded.digest, started = excluded.started, agent = excluded.agent, models = excluded.models,
failed = excluded.failed, cost = excluded.cost, size = excluded.size, facts = excluded.facts RETURNING seq`,
		[]any{r.Project, r.ID, r.Digest.String(), r.StartedAt.UnixMilli(), clean(r.Agent), clean("\n" + strings.Join(models, "\n") + "\n"), failed, cost, r.Size, string(facts)}, &seq)
	return seq, err
}

// A Query chooses runs of a project: those of which all is true that it asks for.
type Query struct {
	Project      string
	Since, Until time.Time // when it began; zero for any
	Agent        string    // is what the program is called
	Model        string    // is a part of the name of a model that was asked
	Failed       bool      // the program did not exit with 0, or the recorder did not come to its end
	MinCost      float64   // USD, as far as prices are known
	Tags         []string  // it has all of them
	Held         bool      // it is on hold
	Limit        int       // how many; 0 for DefaultLimit
	MaxBytes     int       `json:"-"` // that those which it chooses have in the database together, or ErrBytes is returned; 0 for any
}

// ErrBytes is returned where the runs that a Query chooses have more than its MaxBytes.
var ErrBytes = errors.New("these are too many runs at once")

func (q *Query) holds(bytes int) error {
	if q.MaxBytes > 0 && bytes > q.MaxBytes {
		return ErrBytes
	}
	return nil
}

// DefaultLimit is how many runs or hits are given where nobody says.
const DefaultLimit = 50

func (q *Query) limit() int {
	if q.Limit > 0 {
		return q.Limit
	}
	return DefaultLimit
}

// where is the condition of a Query on runs r.
func (q *Query) where() (string, []any) {
	sql, args := "r.project = ?", []any{q.Project}
	add := func(asked bool, condition string, arg any) {
		if asked {
			sql, args = sql+" AND "+condition, append(args, arg)
		}
	}
	add(!q.Since.IsZero(), "r.started >= ?", q.Since.UnixMilli())
	add(!q.Until.IsZero(), "r.started < ?", q.Until.UnixMilli())
	add(q.Agent != "", "r.agent = ?", q.Agent)
	add(q.Model != "", `LOWER(r.models) LIKE LOWER(?) ESCAPE '\'`, "%"+strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(q.Model)+"%")
	add(q.Failed, "r.failed = ?", 1)
	add(q.MinCost > 0, "r.cost >= ?", q.MinCost)
	for _, tag := range q.Tags {
		add(true, "EXISTS (SELECT 1 FROM tags g WHERE g.project = r.project AND g.tag = ? AND g.seq = r.seq)", tag)
	}
	if q.Held {
		sql += " AND r.seq IN (SELECT h.seq FROM holds h)"
	}
	return sql, args
}

// columns are what scanRun reads of a run r.
const columns = `r.facts, COALESCE((SELECT string_agg(g.tag, ',') FROM tags g WHERE g.seq = r.seq), ''), COALESCE((SELECT h.facts FROM holds h WHERE h.seq = r.seq), '')`

// chosen is from where a query takes runs r, in the order of an index, be what it asks for rare or not.
func (q *Query) chosen() (sql string, args []any) {
	rest, from, order := *q, "runs r WHERE ", "r.seq DESC"
	switch {
	case len(q.Tags) > 0:
		rest.Tags, order = q.Tags[1:], "l.seq DESC"
		from, args = "tags l CROSS JOIN runs r WHERE l.project = ? AND l.tag = ? AND r.seq = l.seq AND ", []any{q.Project, q.Tags[0]}
	case !q.Since.IsZero() || !q.Until.IsZero():
		order = "r.started DESC, r.seq DESC"
	}
	where, more := rest.where()
	return " FROM " + from + where + " ORDER BY " + order + " LIMIT ?", append(args, more...)
}

// runs are those that a query chooses, what was pushed last first; what began last, where it asks for times.
func (d *runTable) runs(ctx context.Context, q *Query) (out []Run, err error) {
	from, args := q.chosen()
	out, bytes := []Run{}, 0
	err = d.each(ctx, d.db, "SELECT "+columns+from, append(args, q.limit()), func(scan func(...any) error) error {
		r, err := scanRun(scan)
		if err == nil {
			out, bytes = append(out, *r), bytes+r.row
			err = q.holds(bytes)
		}
		return err
	})
	return out, err
}

func scanRun(scan func(...any) error, more ...any) (*Run, error) {
	var facts, tags, hold string
	r := new(Run)
	if err := scan(append([]any{&facts, &tags, &hold}, more...)...); err != nil {
		return nil, err
	}
	err := json.Unmarshal([]byte(facts), r)
	r.row = len(facts) + len(tags) + len(hold)
	r.Tags, r.Hold = strings.FieldsFunc(tags, func(r rune) bool { return r == ',' }), nil
	slices.Sort(r.Tags)
	if err == nil && hold != "" {
		err = json.Unmarshal([]byte(hold), &r.Hold)
	}
	if err != nil {
		return nil, fmt.Errorf("a row of the store cannot be read: %w", err)
	}
	return r, nil
}

// ErrAmbiguous is wrapped by the refusal of a beginning of several ids.
var ErrAmbiguous = errors.New("write more of it")

// find returns the run of a project that an id, or the beginning of one, names; nil for none.
func (d *runTable) find(ctx context.Context, project, id string) (found *Run, err error) {
	if id == "" {
		return nil, errors.New("expected the id of a run, got nothing")
	}
	var ids []string
	err = d.each(ctx, d.db, "SELECT "+columns+" FROM runs r WHERE project = ? AND id >= ? AND id < ? ORDER BY id LIMIT 3", []any{project, id, id + "\U0010FFFF"},
		func(scan func(...any) error) error {
			r, err := scanRun(scan)
			if err == nil {
				if ids = append(ids, r.ID); found == nil {
					found = r
				}
			}
			return err
		})
	if err == nil && len(ids) > 1 && found.ID != id {
		return nil, fmt.Errorf("%q begins %s: %w", id, strings.Join(ids, ", "), ErrAmbiguous)
	}
	return found, err
}

// exactly returns the run of a project with an id; nil for none.
func (d *runTable) exactly(ctx context.Context, project, id string) (*Run, error) {
	var found *Run
	err := d.each(ctx, d.db, "SELECT "+columns+" FROM runs r WHERE project = ? AND id = ?", []any{project, id}, func(scan func(...any) error) (err error) {
		found, err = scanRun(scan)
		return err
	})
	return found, err
}

// clean is a text that every database takes.
func clean(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", " "), "\uFFFD")
}

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

// workers are those of a store: what they found, and which of them live.
type workers struct{ db *database }

// PutVerdict writes a verdict by a statement of a transaction. Nothing is written of a run that is gone, or was changed since.
func (s *workers) PutVerdict(ctx context.Context, exec func(ctx context.Context, query string, args ...any) error, v *Verdict) error {
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
func (s *workers) Verdicts(ctx context.Context, project string, ids []string) (map[string][]Verdict, error) {
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
func (s *workers) Verdict(ctx context.Context, project, id, tapedeck, program string) (*Verdict, error) {
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
func (s *workers) Alive(ctx context.Context, worker, queue string, long time.Duration) (now time.Time, err error) {
	var until int64
	_, err = s.db.one(ctx, s.db.db, "INSERT INTO workers (name, until, queue) VALUES (?, "+s.db.nowMS+" + ?, ?) ON CONFLICT (name) DO UPDATE SET until = excluded.until RETURNING until",
		[]any{worker, long.Milliseconds(), queue}, &until)
	if err == nil {
		_, err = s.db.exec(ctx, s.db.db, "DELETE FROM workers WHERE until <= "+s.db.nowMS)
	}
	return time.UnixMilli(until).Add(-long), err
}

// Workers names those that live, and the queue of each.
func (s *workers) Workers(ctx context.Context) (map[string]string, error) {
	live := make(map[string]string)
	err := s.db.each(ctx, s.db.db, "SELECT name, queue FROM workers WHERE until > "+s.db.nowMS, nil, func(scan func(...any) error) error {
		var name, queue string
		err := scan(&name, &queue)
		live[name] = queue
		return err
	})
	return live, err
}

// unused are the blobs that no run has.
func (d *runTable) unused(ctx context.Context) (out []cas.Digest, err error) {
	err = d.each(ctx, d.db, "SELECT digest FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.digest = b.digest)", nil, func(scan func(...any) error) error {
		var name string
		if err := scan(&name); err != nil {
			return err
		}
		digest, err := cas.Parse(name)
		out = append(out, digest)
		return err
	})
	return out, err
}
