// Package jsonscan reads JSON that others wrote, value by value and fast: the lines of a tape, of a session log, of an agent's
// transcript.
//
// Goals: a reader of a known form takes the keys that it knows and steps over the rest at the speed of memory; what stands
// there is never changed (no number is rounded, no invalid UTF-8 replaced, no key of two chosen silently); hostile input
// costs an error and no more.
//
// Non-goals: writing values of Go types (Marshal is encoding/json's), formatting, canonical form (package canonjson, which reads with this one).
//
// Grammar: RFC 8259, in UTF-8, without a byte order mark. Two things are left to whoever asks for them, because they cost a
// pass of their own: Valid says whether bytes are UTF-8, Duplicate whether a key stands twice. A lone surrogate escape
// decodes as U+FFFD, as in encoding/json; Raw keeps it.
//
// A Scanner reads one value that is in memory:
//
//	for s.Begin('{'); s.More('}'); {
//		switch string(s.Key()) {
//		case "id":
//			id = s.Text()
//		default:
//			s.Skip()
//		}
//	}
//	return s.End()
//
// Into does that by the tags of a struct, and is a quarter slower.
//
// Lines cuts a file into its lines. A Stream reads one long value, a list of millions for example, of which no more than one
// element is in memory.
//
// Limits: MaxDepth levels of nesting in what is stepped over or validated. A line
// or an element is as long as its reader allows; memory beyond the value itself is one buffer.
//
// Durability and ordering are not its business: it only reads.
package jsonscan
