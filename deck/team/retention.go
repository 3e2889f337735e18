package team

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A Hold keeps a run: it is neither removed, nor does another recording take its place, until it is released.
type Hold struct {
	By  string    `json:"by"`
	Why string    `json:"reason"`
	At  time.Time `json:"at"`
}

// ErrHeld is wrapped by the refusal to remove or change a run that is on hold.
var ErrHeld = errors.New("is on hold")

// Hold puts the run of a project with an id on hold, which refuses one that is on hold already.
func (s *Store) Hold(ctx context.Context, project, id, by, why string) (*Run, error) {
	return s.change(ctx, project, id, "hold", func(tx *sql.Tx, seq int64) error {
		if err := s.db.refuseHeld(ctx, tx, id, seq); err != nil {
			return err
		}
		var now int64
		if _, err := s.db.one(ctx, tx, "SELECT "+s.db.nowMS, nil, &now); err != nil {
			return err
		}
		facts, err := json.Marshal(Hold{clean(by), clean(why), time.UnixMilli(now).UTC()})
		if err == nil {
			_, err = s.db.exec(ctx, tx, "INSERT INTO holds (seq, facts) VALUES (?, ?)", seq, string(facts))
		}
		return err
	})
}

// Release ends the hold of a run; one that is on none is no error.
func (s *Store) Release(ctx context.Context, project, id string) (*Run, error) {
	return s.change(ctx, project, id, "release", func(tx *sql.Tx, seq int64) error {
		_, err := s.db.exec(ctx, tx, "DELETE FROM holds WHERE seq = ?", seq)
		return err
	})
}

// Tag gives tags to the run of a project with an id, and takes others from it.
func (s *Store) Tag(ctx context.Context, project, id string, add, remove []string) (*Run, error) {
	if err := CheckTags(slices.Concat(add, remove)...); err != nil {
		return nil, err
	}
	return s.change(ctx, project, id, "tag", func(tx *sql.Tx, seq int64) error {
		for _, tag := range remove {
			if _, err := s.db.exec(ctx, tx, "DELETE FROM tags WHERE project = ? AND tag = ? AND seq = ?", project, tag, seq); err != nil {
				return err
			}
		}
		return s.db.tag(ctx, tx, project, seq, add)
	})
}

// change changes what is known of a run, alone with it, and returns it as it is then; the audit says what was done.
func (s *Store) change(ctx context.Context, project, id, what string, f func(tx *sql.Tx, seq int64) error) (*Run, error) {
	err := s.db.within(ctx, func(tx *sql.Tx) error {
		seq, _, err := s.db.lockRun(ctx, tx, project, id)
		if err == nil && seq == 0 {
			err = s.db.noRun(ctx, project, id)
		}
		if err == nil {
			err = f(tx, seq)
		}
		if err == nil {
			err = s.db.audit(ctx, tx, project, what, id)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.Run(ctx, project, id)
}

// lockRun has nobody else change a run until the transaction ends; seq is 0 where there is none.
func (d *runTable) lockRun(ctx context.Context, tx *sql.Tx, project, id string) (seq int64, digest string, err error) {
	_, err = d.one(ctx, tx, "UPDATE runs SET digest = digest WHERE project = ? AND id = ? RETURNING seq, digest", []any{project, id}, &seq, &digest)
	return seq, digest, err
}

// refuseHeld returns an error that wraps ErrHeld where a run is on hold.
func (d *runTable) refuseHeld(ctx context.Context, tx *sql.Tx, id string, seq int64) error {
	var facts string
	held, err := d.one(ctx, tx, "SELECT facts FROM holds WHERE seq = ?", []any{seq}, &facts)
	if err != nil || !held {
		return err
	}
	var h Hold
	if err := json.Unmarshal([]byte(facts), &h); err != nil {
		return err
	}
	return h.refuse(id)
}

func (h *Hold) refuse(id string) error {
	return fmt.Errorf("%s %w by %s since %s: %s", id, ErrHeld, h.By, h.At.Format(time.RFC3339), h.Why)
}

// The bounds of tags: of one in bytes, and how many a run may have.
const (
	maxTag  = 64
	maxTags = 100
)

// ErrTags is wrapped by the refusal of tags.
var ErrTags = errors.New("no tags of a run")

// CheckTags refuses what cannot be tags of one run.
func CheckTags(tags ...string) error {
	if len(tags) > maxTags {
		return fmt.Errorf("%w: there are %d at most", ErrTags, maxTags)
	}
	for _, tag := range tags {
		if tag == "" || len(tag) > maxTag || strings.ContainsFunc(tag, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("-_.:/=@+", r) }) {
			return fmt.Errorf("%w: %q: want 1 to %d bytes of letters, digits and -_.:/=@+", ErrTags, tag, maxTag)
		}
	}
	return nil
}

// tag gives tags to a run that is locked.
func (d *runTable) tag(ctx context.Context, tx *sql.Tx, project string, seq int64, tags []string) error {
	if err := CheckTags(tags...); err != nil || len(tags) == 0 {
		return err
	}
	for _, tag := range tags {
		if _, err := d.exec(ctx, tx, "INSERT INTO tags (project, tag, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", project, tag, seq); err != nil {
			return err
		}
	}
	var n int
	_, err := d.one(ctx, tx, "SELECT COUNT(*) FROM tags WHERE seq = ?", []any{seq}, &n)
	if err == nil && n > maxTags {
		err = fmt.Errorf("%w: there are %d at most", ErrTags, maxTags)
	}
	return err
}

// A Rule says which runs of a project go: those that are not on hold and of which all is true that it asks for. Zero asks for nothing.
type Rule struct {
	Older   time.Duration `json:"older,omitempty"`    // it began so long ago, by the database's clock
	Keep    int           `json:"keep,omitempty"`     // it is not among so many that were pushed last
	MaxSize int64         `json:"max_size,omitempty"` // what was pushed first goes, until all that are left have so many bytes together
	Tag     string        `json:"tag,omitempty"`      // it has this tag; Keep and MaxSize count only those that have
}

// Asks reports whether a rule asks for anything but a tag, which alone lets nothing go.
func (r *Rule) Asks() bool { return r.Older > 0 || r.Keep > 0 || r.MaxSize > 0 }

// why is what a tombstone says of a rule.
func (r *Rule) why() string {
	var asked []string
	add := func(on bool, format string, arg any) {
		if on {
			asked = append(asked, fmt.Sprintf(format, arg))
		}
	}
	add(r.Tag != "", "tagged %s", r.Tag)
	add(r.Older > 0, "older than %v", r.Older)
	add(r.Keep > 0, "not among the newest %d", r.Keep)
	add(r.MaxSize > 0, "beyond %d bytes", r.MaxSize)
	return "its time was over: " + strings.Join(asked, ", ")
}

// An Expired run is one that a rule lets go.
type Expired struct {
	ID        string     `json:"id"`
	StartedAt time.Time  `json:"started_at"`
	Size      int64      `json:"size"`
	Digest    cas.Digest `json:"digest"`
}

// Expired are the runs of a project that a rule lets go, what was pushed first before the others.
func (s *Store) Expired(ctx context.Context, project string, r *Rule) (out []Expired, err error) {
	if !r.Asks() {
		return nil, nil
	}
	q := &Query{Project: project}
	if r.Tag != "" {
		q.Tags = []string{r.Tag}
	}
	where, args := q.where()
	chosen := slices.Clone(args)
	query := "SELECT r.seq, r.id, r.started, r.size, r.digest FROM runs r WHERE " + where + " AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.seq = r.seq)"
	var total int64
	if r.MaxSize > 0 {
		if _, err := s.db.one(ctx, s.db.db, "SELECT CAST(COALESCE(SUM(r.size), 0) AS BIGINT) FROM runs r WHERE "+where, args, &total); err != nil {
			return nil, err
		}
	}
	if r.Older > 0 {
		query, chosen = query+" AND r.started < "+s.db.nowMS+" - ?", append(chosen, r.Older.Milliseconds())
	}
	if r.Keep > 0 {
		query += " AND r.seq <= (SELECT r.seq FROM runs r WHERE " + where + " ORDER BY r.seq DESC LIMIT 1 OFFSET ?)"
		chosen = append(append(chosen, args...), r.Keep)
	}
	const page = 1000
	for last, rows := int64(0), page; rows == page && err == nil; {
		rows = 0
		err = s.db.each(ctx, s.db.db, query+" AND r.seq > ? ORDER BY r.seq LIMIT ?", append(slices.Clone(chosen), last, page), func(scan func(...any) error) error {
			var e Expired
			var started int64
			var digest string
			if err := scan(&last, &e.ID, &started, &e.Size, &digest); err != nil || r.MaxSize > 0 && total <= r.MaxSize {
				return err
			}
			rows, total, e.StartedAt = rows+1, total-e.Size, time.UnixMilli(started).UTC()
			e.Digest, err = cas.Parse(digest)
			out = append(out, e)
			return err
		})
	}
	return out, err
}

// Prune removes the runs of a project that a rule lets go. Sweep takes away what is left of them.
func (s *Store) Prune(ctx context.Context, project string, r *Rule, signer note.Signer) (removed []*Tombstone, err error) {
	expired, err := s.Expired(ctx, project, r)
	for i := 0; i < len(expired) && err == nil; i++ {
		t := &Tombstone{ID: expired[i].ID, Project: project, Digest: expired[i].Digest, Why: r.why()}
		if err = s.bury(ctx, t, r.Tag, signer); err == nil {
			removed = append(removed, t)
		} else if errors.Is(err, ErrHeld) || errors.Is(err, ErrChanged) { // meanwhile
			err = nil
		}
	}
	return removed, err
}

// A Tombstone stands where a run was.
type Tombstone struct {
	ID      string     `json:"id"`
	Project string     `json:"project"`
	Digest  cas.Digest `json:"digest"` // of what was removed
	At      time.Time  `json:"removed_at"`
	Why     string     `json:"reason"`
	Note    string     `json:"note,omitempty"` // the same, as a signed note
}

// tombstoneHead is the first line of the note of a tombstone; the second is its JSON.
const tombstoneHead = "tapedeck: a run was removed"

func (t *Tombstone) sign(signer note.Signer) error {
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	signed, err := note.Sign(&note.Note{Text: tombstoneHead + "\n" + string(b) + "\n"}, signer)
	t.Note = string(signed)
	return err
}

// SignedBy is the name of the key that signed the note.
func (t *Tombstone) SignedBy() string {
	_, last, _ := strings.Cut(t.Note, "\n\n— ")
	name, _, _ := strings.Cut(last, " ")
	return name
}

// ErrChanged is wrapped by the refusal to remove what is not there any more as it was.
var ErrChanged = errors.New("somebody has pushed it anew, or removed it: run the command again")

// bury puts a tombstone in the place of its run.
func (d *runTable) bury(ctx context.Context, tx *sql.Tx, t *Tombstone, tag string) error {
	seq, digest, err := d.lockRun(ctx, tx, t.Project, t.ID)
	if err == nil && digest != t.Digest.String() {
		err = fmt.Errorf("%s: %w", t.ID, ErrChanged)
	}
	if err == nil && tag != "" {
		var one int
		if tagged, errTag := d.one(ctx, tx, "SELECT 1 FROM tags WHERE project = ? AND tag = ? AND seq = ?", []any{t.Project, tag, seq}, &one); errTag != nil || !tagged {
			err = cmp.Or(errTag, fmt.Errorf("%s: %w", t.ID, ErrChanged))
		}
	}
	if err == nil {
		err = d.refuseHeld(ctx, tx, t.ID, seq)
	}
	if err == nil {
		_, err = d.exec(ctx, tx, "DELETE FROM runs WHERE seq = ?", seq)
	}
	if err == nil {
		err = d.forget(ctx, tx, seq)
	}
	if err == nil {
		_, err = d.exec(ctx, tx, "INSERT INTO tombstones (project, id, digest, note) VALUES (?, ?, ?, ?)", t.Project, t.ID, t.Digest.String(), t.Note)
	}
	return err
}

// tombstone returns what stands where a run was; nil for nothing.
func (d *runTable) tombstone(ctx context.Context, on querier, project, id string) (*Tombstone, error) {
	var text string
	there, err := d.one(ctx, on, "SELECT note FROM tombstones WHERE project = ? AND id = ? LIMIT 1", []any{project, id}, &text)
	if err != nil || !there {
		return nil, err
	}
	_, line, _ := strings.Cut(text, "\n")
	line, _, _ = strings.Cut(line, "\n")
	t := new(Tombstone)
	if err := json.Unmarshal([]byte(line), t); err != nil {
		return nil, fmt.Errorf("the tombstone of %s: %w", id, err)
	}
	t.Note = text
	return t, nil
}

// refuseRemoved returns an error that wraps ErrRemoved where a run has a tombstone.
func (d *runTable) refuseRemoved(ctx context.Context, on querier, project, id string) error {
	t, err := d.tombstone(ctx, on, project, id)
	if err != nil || t == nil {
		return err
	}
	return fmt.Errorf("%s %w at %s: %s", id, ErrRemoved, t.At.Format(time.RFC3339), t.Why)
}

// noRun says that there is none, or that it was removed.
func (d *runTable) noRun(ctx context.Context, project, id string) error {
	if err := d.refuseRemoved(ctx, d.db, project, id); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrNoRun, id)
}
