package sessionlog

// FoldOptions say how much of a log is folded. Nil and zero work.
type FoldOptions struct {
	// At, where it is not nil, stops at the end of that turn: before the first event whose turn is a greater integer. What
	// stands behind it is not read. An event without a turn, or with one that is no integer, belongs to the turn of the event
	// before it, and what stands before the first turn to turn 0.
	At *int
	// Each is told of every entry before it is folded, and may end the fold by an error, which is returned as it is.
	Each func(e *Entry) error
}

// SnapshotOf folds a log. The error is that of the log, a *LoadError around an *EventError for an event that cannot be read, or
// that of Each.
func SnapshotOf(log *Reader, o *FoldOptions) (*Snapshot, error) {
	if o == nil {
		o = &FoldOptions{}
	}
	f := NewFold()
	for e, err := range log.Entries() {
		if err != nil {
			return nil, err
		}
		if o.Each != nil {
			if err := o.Each(e); err != nil {
				return nil, err
			}
		}
		if o.At != nil && e.HasTurn && e.Turn > *o.At {
			break
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
	if err := f.view.readValid(e.event); err != nil {
		return err
	}
	return f.add()
}
