//go:build race

package script_test

const raced = true // what a process takes under the race detector is several times its own
