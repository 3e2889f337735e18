// Package process is the boundary between a program and other programs: its own standard streams, and the commands that it runs.
//
// # Streams
//
// Recording: RelayInput passes the caller's stdin on to the program; RelayOutput passes what the program wrote
// on to the caller. Both keep what passes in a Stream, which holds a bounded part in memory: what is longer goes to the
// blobs as it comes, scrubbed, so that a run's gigabytes of output cost no memory and a secret in them never reaches the
// disk. A store that fails stops the keeping, never the passing.
//
// Digests are taken after masking and renumbering (package scrub), for a program that prints the time or a temporary name
// has not diverged.
//
// # Commands
//
// A Command is answered whole by a Runner: a Player from a process tape, a Taped from an event tape, a Host by running it, a Keeper by
// another one, whose answers it keeps for a process tape. A Spawner stands in front of one as what a program under test uses (its
// Command is that of os/exec), lets the time of an answer pass, and records it: one process_spawn a command, behind it what the command
// changed among the program's files. With no Runner it denies every command.
//
// A command is used up when it is asked for, and recorded when its time has passed, also where its context ends before that: a replay is
// then cut alike. A result is the same whoever gives it: a program that is not there has status 127, one that cannot run 126, one that
// a signal ended 128 and its number, and the files that a command changed come from a tape as from the machine.
//
// A process tape is another producer's format (ReadCalls, WriteCalls). What ours has beside it stands in keys of its own that others
// ignore; what another has beside it is kept.
//
// Not goals: spawns of the program's children, which need a supervisor in the jail; commands that are talked with while they run;
// keeping a command that runs on the machine from the rest of it.
package process
