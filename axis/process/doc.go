// Package process is the boundary between a program and its standard streams.
//
// Recording: RelayInput passes the caller's stdin, an Input, on to the program; RelayOutput passes what the program wrote
// on to the caller. Both keep what passes in a Stream, which holds a bounded part in memory: what is longer goes to the
// blobs as it comes, scrubbed, so that a run's gigabytes of output cost no memory and a secret in them never reaches the
// disk. A store that fails stops the keeping, never the passing.
//
// Digests are taken after masking and renumbering (package scrub), for a program that prints the time or a temporary name
// has not diverged.
//
// Not goals: spawns of the program's children, which need a supervisor in the jail.
package process
