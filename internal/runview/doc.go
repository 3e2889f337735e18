// Package runview shows a run to people: a line a turn, a whole turn, the picture of a run that goes on, and a run in the
// forms that other tools read.
//
// Goals: who looks at a run sees at once what the agent did, what was refused and what failed; nothing that a run holds steers
// the terminal of who looks at it. Everything here is a pure function of records: a Run takes them one after the other and keeps
// of each turn what can be shown, in bounded memory; Frame draws it as lines of a size. Nobody is asked for the time or for the
// size of anything.
//
// Not goals: where records come from, terminals, keys.
//
// Memory: MaxTurns turns, of each at most a few texts of keptText bytes.
package runview
