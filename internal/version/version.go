// Package version names the version of tapedeck, in one place for everything that writes it down: what packages write as the
// producer of tapes and recordings, and what the command prints.
package version

// Version is that of the module, without a v.
const Version = "0.1.0"
