// Package procgroup starts a program in a process group of its own, signals and ends that, and names the signals of jobs and
// terminals on every system.
package procgroup
