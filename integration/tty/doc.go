// Package tty records and replays programs that use a terminal, with a terminal around them that the test plays: an editor, a
// pager, a shell with jobs, and small scripts for what a terminal passes. Its tests have the build tag tty, for they need
// vim, less and bash on the machine.
package tty
