package team

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/cas"
)

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
func (d *database) bury(ctx context.Context, tx *sql.Tx, t *Tombstone, tag string) error {
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
func (d *database) tombstone(ctx context.Context, on querier, project, id string) (*Tombstone, error) {
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
func (d *database) refuseRemoved(ctx context.Context, on querier, project, id string) error {
	t, err := d.tombstone(ctx, on, project, id)
	if err != nil || t == nil {
		return err
	}
	return fmt.Errorf("%s %w at %s: %s", id, ErrRemoved, t.At.Format(time.RFC3339), t.Why)
}

// noRun says that there is none, or that it was removed.
func (d *database) noRun(ctx context.Context, project, id string) error {
	if err := d.refuseRemoved(ctx, d.db, project, id); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrNoRun, id)
}
