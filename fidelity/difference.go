package fidelity

import "github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"

// An Op says what happened to a value.
type Op = bodies.Op

// The operations of a Change.
const (
	Changed = bodies.Changed
	Added   = bodies.Added
	Removed = bodies.Removed
	Moved   = bodies.Moved // an element of a list; Was and Now are its old and its new path
	Shown   = bodies.Shown // part of a record that one side has alone: Was as recorded, or Now on the replay
)

// A Change is one difference between two bodies: its path, what stood there and what does, shortened to the words that differ.
type Change = bodies.Change

// DiffJSON returns where two bodies differ. JSON is compared by its structure: of an object plain values first, then lists
// and objects, each by key; elements of a list are aligned, so one inserted message is one Change and one that was moved
// is one too; text is compared word by word. Bodies that mean the same JSON have no change.
//
// Forms, multipart bodies and event streams are compared by their fields, parts and events, any other text line by line.
// Of what is no text the first byte that differs is the only Change.
//
// At most 1000 changes are listed. Time and memory are bounded by the lengths of the bodies; what was compared more coarsely
// for it says so.
func DiffJSON(a, b []byte) []Change { return bodies.Diff(a, b, nil) }

// Summary returns up to limit changes as text, one value a block, and the number of those left out:
//
//	messages[0].content (user)
//	  - "write hello.txt"
//	  + "write bye.txt"
//	tools[3] "rm" added
//	  + {"name":"rm"}
//	and 2 more
//
// A limit below 1 stands for all. The text has no newline at its end and is empty without a change.
func Summary(changes []Change, limit int) string { return bodies.Summary(changes, limit) }
