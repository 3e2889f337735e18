// Package process is the one table of what is known of the processes inside a jail: which threads are whose, who forked whom, which program
// each has become and who answers what it asks, what is being done with a thread's call, and how each ends.
//
// A Process stands in the Table from the first time that somebody has to do with it until it has ended, which one goroutine hears of for all.
// Each is held by a descriptor, so that its number is its own that long. Deciders keep what they decided in it: who has the Table's lock may
// read and change what it holds.
//
// How a process ended is read in /proc while nobody waited for it, and asked of its descriptor afterwards, which Linux 6.15 and newer
// answer. Before that it may stay unknown.
//
// Not goals: deciding anything. On systems other than Linux there are only the types.
package process

import "syscall"

// An Exit is how a program ended: Signal is 0 unless a signal ended it.
type Exit struct {
	Code   int
	Signal syscall.Signal
}

// Ended says how a process ended.
type Ended struct {
	Exit  Exit
	Known bool // false: the process is gone, and this kernel does not tell how it ended
	Left  bool // it lived when the jail's program had ended or the jail was closed: what is left is killed then
	Again bool // of a Program alone: the process lives, as another one
}
