// Package terminal gives a program a terminal of its own and passes it through.
//
// A program whose standard streams are a terminal behaves otherwise than one in a pipeline, so a recorder that stands
// between must offer a pseudo-terminal wherever the caller had one: size, window changes and raw input included. Which of
// the streams were the terminal is decided stream by stream, so that `tapedeck record -- ls | less` keeps its pipe.
//
// Not goals: the screen, and cassettes of it.
package terminal
