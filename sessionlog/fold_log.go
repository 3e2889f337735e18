package sessionlog

import "io"

// FoldOptions say how much of a log is folded. Nil and zero work.
type FoldOptions struct {
	// At, where it is not nil, stops at the end of that turn: before the first event whose turn is a greater integer. What
	// stands behind it is not folded. An event without a turn, or with one that is no integer, belongs to the turn of the
	// event before it, and what stands before the first turn to turn 0.
	At *int
	// Seen, where it is not nil, is told what was folded.
	Seen *FoldSeen
}

// FoldSeen is what was folded of a log.
type FoldSeen struct {
	Events   int  // those that the snapshot says nothing about too
	LastTurn int  // the highest turn of those
	More     bool // At stopped before the end of the log
}

// SnapshotOf folds a log whose entries were not read yet. The log is at its end then. The error is that of the log, a *LoadError
// around an *EventError for an event that cannot be read.
func SnapshotOf(log *Reader, o *FoldOptions) (*Snapshot, error) {
	var at *int
	seen := new(FoldSeen)
	if o != nil {
		at = o.At
		if o.Seen != nil {
			seen = o.Seen
		}
	}
	f := NewFold()
	for e, err := range log.Entries() {
		if err != nil {
			return nil, err
		}
		if seen.More = at != nil && e.HasTurn && e.Turn > *at; seen.More {
			log.err = io.EOF
			break
		}
		if e.event != nil {
			seen.Events++
			seen.LastTurn = max(seen.LastTurn, e.Turn)
		}
		if err := f.AddEntry(e); err != nil {
			return nil, log.fail(err)
		}
	}
	return &f.snap, nil
}

// AddEntry folds the event of an entry, and passes over one without. The error is an *EventError, as that of AddRaw.
func (f *Fold) AddEntry(e *Entry) error {
	if e.event == nil || foldSteps[e.Kind] == nil {
		return nil
	}
	if err := f.view.readValid(e.event); err != nil { // the entry's reader knows that it is UTF-8
		return err
	}
	return f.add()
}
