//go:build !race

package stage

// Self is the executable of the init: our own.
const Self = "/proc/self/exe"
