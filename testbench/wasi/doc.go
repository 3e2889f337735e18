// Package wasi runs WebAssembly modules on a testbench: programs in Go, C, Rust or any language that compiles to WASI preview 1.
//
// All that such a program asks of a system is virtual, and on the bench's tape: the clock and sleeping (clock_read, clock_sleep), random
// bytes (random_read), the environment (env_read), standard input (a file_read of /dev/stdin) and files (file_read, file_write, …: the bench's own
// files, mounted at "/"). Beyond WASI it may call the functions of package host, imported from the module "tapedeck": each takes the
// address and the length of a JSON object, its arguments by name, and returns the length of its answer, negative where that is the
// text of an error; "take" then copies the answer to an address. Package guest wraps that for Go; docs/reference/wasi.md has C and Rust.
//
// The same module with the same inputs gives the same tape, byte for byte: nothing in a module runs beside anything else, and what its
// language's runtime reads for itself (Go's scheduler the clock, every hash map a seed) comes from the bench too.
//
// Goals: programs that know nothing of Tapedeck run as they are. A module has no more memory, time, output and open files than Options
// give, reaches no file but the bench's, and no network at all. Not goals: sockets, threads, the component model (WASI preview 2), bytes
// that no compiler wrote: one that says that more follows than does may have the engine ask for that much memory.
//
// Milliseconds are what a tape has, so they are what a module sees: its clocks stand at whole milliseconds, and a sleep lasts as many
// milliseconds as hold it. Its monotonic clock is one millisecond ahead of the bench's, for Go's runtime refuses one that reads 0.
package wasi
