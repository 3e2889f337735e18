// Package launch starts the init of a jail: our own executable, in namespaces of its own.
//
// It stands apart from package jail, and imports next to nothing, so that it can be used before most other packages are initialized: a command
// that is about to need a jail has its init come up meanwhile (package early).
package launch
