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
// A Session is any program on a terminal that a Go program uses as a person would: it types, presses keys by name, pastes, moves
// a mouse, resizes, sends signals, and waits for what stands on the screen. Attach gives a session to a person, and
// RecordSession records one in a cassette. The program is never held up by the screen model, which reads behind it.
//
// Not goals: the screen itself (internal/vt), cassettes (package cassette), what a person sees of them.
package terminal
