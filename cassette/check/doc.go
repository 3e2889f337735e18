// Package check says whether a terminal cassette shows what it must.
//
// A scenario file (YAML or JSON; Schema is its JSON Schema) is bound to one cassette by id and digest and lists assertions of six
// families: frame (text on screens), state (cursor, size, colours, modes), timing, input, service events and process.
// docs/reference/assertions.md shows each. Unknown keys, wrong types and what can never be so are refused when the file is read, with
// line and column.
//
// Screens. The screen model of this build makes them from the output and the resizes: a blank one at the start, and one after each
// chunk and resize, which stands until the next. A window of time is about every screen that stood at any time of it, for
// however short. "At 2 s" is the screen after everything that came at 2 s. Times are as coarse as the recording's resolution.
//
// One pass reads the cassette, however many assertions there are; texts are taken from a screen only where it has changed, and
// memory depends on the assertions and the size of the screen, not on the length of the cassette.
//
// Nothing is green that was not looked at: an assertion about a time after the cassette's end, about a row that the screen
// does not have, or about the end of a recording that has none, is Unchecked, and the Result is not Passed.
//
// In Go tests: Run checks a scenario, Golden holds a screen against a file.
//
// Not goals: running programs, comparing two recordings, drawing.
package check
