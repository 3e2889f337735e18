package library

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Beside makes an empty directory beside a recording, on its file system, for one that is to supersede it.
func Beside(rec *recording.Recording) (string, error) {
	return os.MkdirTemp(filepath.Dir(rec.Dir), durable.TempPrefix+"new-")
}

// Succeed makes the unsealed recording at made the next of the name of old: it gets its id, and no parent. The error wraps ErrLive for
// one that is being recorded, and says what else forbids that old goes: notes of people about its records, a log of sealed recordings
// that lists it.
func (l *Library) Succeed(old *recording.Recording, made string) (*recording.Recording, error) {
	notes := filepath.Base(old.TapePath()) + ".annotations.jsonl"
	switch {
	case old.Live() == recording.LiveYes:
		return nil, fmt.Errorf("%s %w", old.Dir, recording.ErrLive)
	case recording.Exists(filepath.Join(old.Dir, notes)):
		return nil, fmt.Errorf("%s has notes (tapedeck annotate), which are of its records: put %s away first", old.Dir, notes)
	case sealing.LoggedIn(l.SealLog(), old.Manifest.ID) != "":
		return nil, fmt.Errorf("%s stands in the log of sealed recordings, which would say that it was changed: record another", old.Manifest.ID)
	}
	rec, err := recording.Open(made)
	if err != nil {
		return nil, err
	}
	m := rec.Manifest
	m.Seed, m.ID, m.Parent = m.SeededBy(), old.Manifest.ID, nil
	return rec, m.Write(made, false)
}

// Supersede puts the recording that Succeed made ready in the place of old, which is deleted but for what is no recording's: that stays
// where it is. made must lie on the file system of old, as Beside has it. After an error old stands where it stood or, where the error says
// so, beside it under a name that ends in keptSuffix, and is never at made.
func Supersede(old, made *recording.Recording) error {
	others, err := foreign(old.Dir)
	if err != nil {
		return err
	}
	if err := exchange(made.Dir, old.Dir); err != nil {
		return err
	}
	if err := moveAll(others, made.Dir, old.Dir); err != nil {
		if back := exchange(made.Dir, old.Dir); back != nil {
			return errors.Join(err, back, keep(made.Dir, old.Dir))
		}
		return err
	}
	_ = removeRecording(made.Dir, nil) // what stays is below a temporary name
	return nil
}

// keptSuffix ends the name of a recording that could not be put back to its own.
const keptSuffix = ".kept"

// keep gives the old recording, which stands at from, a name beside its own that nobody cleans up. The error, never nil, says where it is.
func keep(from, to string) error {
	if err := renameNew(from, to+keptSuffix); err != nil {
		return err
	}
	return fmt.Errorf("the recording that stood at %s is at %[1]s%s now", to, keptSuffix)
}

// moveAll moves names from one directory to another: all, or after an error none.
func moveAll(names []string, from, to string) error {
	for i, name := range names {
		if err := renameNew(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return errors.Join(err, moveAll(names[:i], to, from))
		}
	}
	return nil
}

// exchangeByTurns is exchange by three renames. Who is killed between them leaves what stood at to under a name that nobody cleans up.
func exchangeByTurns(from, to string) error {
	aside := to + keptSuffix
	if err := os.Rename(to, aside); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(aside, to))
	}
	if err := os.Rename(aside, from); err != nil {
		return fmt.Errorf("what stood at %s is at %s now: %w", to, aside, err)
	}
	return nil
}
