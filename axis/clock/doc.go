// Package clock is the boundary between a program and time: a clock that stands still until somebody waits on it, or the real one.
// Every reading and every sleep is on the tape.
//
// Paused, a wait takes no real time: the clock jumps to its end, by way of every timer that is due before. 25 h of sleep are
// microseconds, and the same program reads the same times on every run. A receive from a timer's channel is no wait that the clock
// knows of: nothing moves a paused clock but [Clock.Sleep], [Clock.Wait] and the branches of [Clock.Parallel].
//
// Branches: Parallel runs functions as branches of which one runs at a time. A branch goes on until it waits or ends; then it is the
// turn of the earliest due time, then of the branch, named by its path of indexes: [0], [1], [1,0]. Time moves only when nobody is
// left to run at the present time. So records stand on the tape by virtual time, then by branch, however many processors there are.
// A branch must not wait for another by other means (a channel, a mutex that the other holds while it sleeps): it has the turn
// while it blocks, so the other never gets it. The branch travels in the context; a goroutine whose context has none (or that of
// a branch which is waiting itself, or has ended) is nobody's branch: it moves a paused clock at once, and who is due earlier is late.
//
// A real clock is the host's: branches run side by side only while they wait or are [Clock.Outside]. In a bubble of testing/synctest
// it is the bubble's time; make it inside.
//
// Locks: nothing of this package is locked while the recorder is called or a timer's function runs.
//
// Not goals: what a program reads past this package; waiting for what another goroutine does (testing/synctest has that).
package clock
