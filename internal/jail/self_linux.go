//go:build !race

package jail

// self is the executable of the init and of the exec stage: our own.
const self = "/proc/self/exe"
