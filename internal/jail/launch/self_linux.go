//go:build !race

package launch

// self is the executable of the init: our own.
const self = "/proc/self/exe"
