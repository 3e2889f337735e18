// Package process is the boundary between a program and its standard streams.
//
// Recording: an Input passes the caller's stdin on to the program and keeps what was passed; an Output passes what the
// program wrote on to the caller and keeps that. Both hold a bounded part in memory: what is longer goes to the blobs as
// it comes, scrubbed, so that a run's gigabytes of output cost no memory and a secret in them never reaches the disk.
//
// Digests are taken after masking and renumbering (package scrub), for a program that prints the time or a temporary name
// has not diverged.
//
// Not goals: spawns of the program's children, which need a supervisor in the jail.
package process
