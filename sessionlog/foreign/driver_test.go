//go:build !fuzz

package foreign

// Built without the tag fuzz, the tests have SQLite: a fuzzer that watches all of its code hardly comes to ours.
import _ "github.com/tapedeck-dev/tapedeck/sessionlog/foreign/sqlite"
