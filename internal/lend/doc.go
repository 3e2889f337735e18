// Package lend stands between two pipes and takes from the first only what was read from the second.
//
// A recorder between a program and what it started reads a pipe that others may read too: the program itself, or what it starts next. What
// the first reader leaves is theirs. So a piece, at most a page, is copied into the second pipe and left in the first (tee); once it was
// read, or nobody can read it any more, as much is taken from the first as is gone from the second.
//
// Loans of one pipe have turns: a piece is lent to one reader at a time. Who reads the first pipe without a loan, in the moment between a
// read of the second and our taking of it, reads that again.
//
// Not goals: sockets, systems other than Linux.
package lend
