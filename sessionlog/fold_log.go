package sessionlog

import "io"

// FoldOptions say how much of a log is folded. Nil and zero work.
type FoldOptions struct {
	// At, where it is not nil, stops at the end of that turn: before the first event whose turn is a greater integer. What
	// stands behind it is not folded. An event without a turn, or with one that is no integer, belongs to the turn of the
	// event before it, and what stands before the first turn to turn 0.
	At *int
	// Odd, where it is not nil, is told of each event with a field that the snapshot has and that holds something else than the format
	// says, or stands twice: the first such field of it. Such fields are left out, as if they were absent. Without Odd they end the fold.
	Odd func(*LoadError)
	// Seen, where it is not nil, is told what was folded.
	Seen *FoldSeen
}

// FoldSeen is what was folded of a log.
type FoldSeen struct {
	Events   int  // those that the snapshot says nothing about too
	LastTurn int  // the highest turn of those
	More     bool // At stopped before the end of the log
}

// SnapshotOf folds a log whose entries were not read yet, on several processors where it is of lines. The log is at its end
// then. The error is that of the log, a *LoadError around an *EventError for an event that cannot be read.
func SnapshotOf(log *Reader, o *FoldOptions) (*Snapshot, error) {
	f := &logFold{Fold: NewFold(), log: log, seen: &FoldSeen{}}
	if o != nil {
		f.at = o.At
		if o.Odd != nil {
			f.odd = func(e *EventError) { o.Odd(log.failure(e)) }
		}
		if o.Seen != nil {
			f.seen = o.Seen
		}
	}
	if err := f.run(); err != nil {
		return nil, err
	}
	return &f.snap, nil
}

// A logFold folds the entries of one log.
type logFold struct {
	*Fold
	log  *Reader
	at   *int
	seen *FoldSeen
	size int // of a block, in bytes; 0 for the usual one
}

func (f *logFold) run() error {
	if f.log.in == nil {
		if err := f.log.begin(); err != nil {
			return err
		}
		if _, lines := f.log.in.(*lineSource); lines {
			return f.blocks()
		}
	}
	for e, err := range f.log.Entries() {
		if err != nil {
			return err
		}
		if f.stops(e.Turn, e.HasTurn) {
			f.log.err = io.EOF
			return nil
		}
		f.see(e.Turn, e.event != nil)
		if err := f.AddEntry(e); err != nil {
			return f.log.fail(err)
		}
	}
	return nil
}

// stops reports whether an event of this turn is behind the end of the turn that is asked for.
func (f *logFold) stops(turn int, has bool) bool {
	f.seen.More = f.at != nil && has && turn > *f.at
	return f.seen.More
}

func (f *logFold) see(turn int, event bool) {
	if event {
		f.seen.Events++
		f.seen.LastTurn = max(f.seen.LastTurn, turn)
	}
}

// AddEntry folds the event of an entry, and passes over one without. The error is an *EventError, as that of AddRaw.
func (f *Fold) AddEntry(e *Entry) error { return f.addValid(e.Kind, e.event) }

// addValid is AddRaw for what is known to be an event of this kind; nil for none.
func (f *Fold) addValid(kind Kind, event []byte) error {
	if event == nil || foldSteps[kind] == nil {
		return nil
	}
	if err := f.view.readValid(event); err != nil {
		return err
	}
	return f.add()
}
