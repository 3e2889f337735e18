//go:build !race

package stage

// Self is the executable of the init and of the exec stage: our own.
const Self = "/proc/self/exe"
