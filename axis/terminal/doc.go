// Package terminal gives a program a terminal of its own and passes it through.
//
// A program whose standard streams are a terminal behaves otherwise than one in a pipeline, so a recorder that stands
// between must offer a pseudo-terminal wherever the caller had one: size, window changes and raw input included. Which of
// the streams were the terminal is decided stream by stream, so that `tapedeck record -- ls | less` keeps its pipe.
//
// The caller's terminal (Caller) is ours while the program uses its own, and given back whenever it does not: the two are one
// job of the caller's shell (Job). What was typed, and new sizes, are remembered with what stood on the screen (Typist), so
// that a replay types again. Leftovers knows what a program that was killed left on.
//
// Not goals: the screen, and cassettes of it.
package terminal
