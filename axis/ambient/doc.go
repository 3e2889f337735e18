// Package ambient keeps what a process takes from its kernel that no two runs would get alike: the wall time it reads, the monotonic clock,
// what the machine is like at the moment, and random bytes. The former are recorded and given again. Random bytes are made: from a Seed that is one recording's, and stands on no disk
// unless somebody asks for it.
//
// # Times
//
// A Heard is told of each answer that reaches a process, by its number (Answered), and has a Stream of its times. A Stream
// reads the kernel's wall time and keeps what it read, and where in the program (Places): threads that run side by side ask in
// another order each time, yet each place in its own. A thread with times of its own hears only what it asked for itself: when
// another one is answered says nothing of it.
//
//	times  = count { place } { token }   count, token = unsigned varints (encoding/binary); place = 8 bytes, little end first
//	token  = zigzag(ns since the time before, or since 1970)<<1
//	       | arrival<<2|1   an answer had come since the time before: the last one, by the arrival of its exchange
//	       | number<<2|3    what follows was read at this place, counted from 1; at none that is known, to begin with
//
// A replay has a Clock, which is told of the same answers, and a Given for each process. It gives each place its recorded times in
// their order, those between two answers between the same two. How often a program looks at the clock while it waits for an answer
// is a matter of moments: what is left of the times before an answer when that has come is passed over, and a read beyond them gets
// a time that goes on from the last one at the pace of the real clock, and comes before the next recorded one. Beyond counts these.
// Where answers come in another order than recorded, the times are given as they stand until that is made up for. Time stands still for a
// second at most, and then for 50 ms at a time: a program that waits for the clock before it asks would never ask.
//
// A tape answers at once, and a program would do after an answer what it did beside the request. So an answer waits (Given.Await) for the
// times that its process had read before it, and the answers that it had had; what comes a moment before its time (near) has it all the same.
//
// Another build of the program has other places: where the first one is none of the recorded ones, they are taken to be these in their
// order.
//
// A run may leave the recorded times (Clock.Leave): from there on all its processes read what goes on from one of them at the pace of the
// real clock.
//
// The monotonic clock has the same form, and a Clock of its own (NewTicks).
//
// # Answers
//
// Answers are kept by what was asked, as JSON: [{"asked":"read /proc/uptime","text":"26210.79 8829.57\n"}, …], bytes that are no UTF-8 in base64
// as "bytes". A replay gives the answers to equal questions in their order, and the last one again to whoever asks more often.
// A process of which one that looked through all of /proc was told nothing was not there, and is not there for it on a replay.
//
// # Random bytes
//
// A Seed is HMAC-SHA256 of the recording's id under the project's key, and what a process draws at a place in one length comes from
// ChaCha8, whose key is HMAC-SHA256 of the process, the number of the place and the length under the Seed; what it reads from a
// device likewise. Who has a Seed can derive every key that was made in the run. It is used as a key is: held in memory, and written (64 hex digits) where a person
// gives it away with the recording.
//
// Concurrency: everything may be used by several goroutines at once.
//
// Not goals: who is which process (package deck), how it is asked (internal/jail).
package ambient
