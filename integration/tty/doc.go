// Package tty records and replays programs that use a terminal, with a terminal around them that the test plays: an editor, a
// pager, a shell with jobs, and small scripts for what a terminal passes.
//
// Its other half uses programs on sessions (axis/terminal), as a person would: each family of terminal programs, real ones
// where there are, is typed into, looked at, and recorded in a cassette, which must open and derive the screen that the session had.
//
// Its tests have the build tag tty, for they need programs of the machine: vim, less, bash, htop, tmux, mc, dialog, fzf, git, npm,
// apt-get, python3. One that is missing is skipped, with the name of its package.
package tty
