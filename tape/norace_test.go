//go:build !race

package tape_test

// race reports whether the race detector runs, which holds a multiple of the memory.
const race = false
