// Package deck records, replays and compares the runs of one unmodified program.
//
// Record runs a program in the jail with every axis on and leaves a recording (package recording): a directory that holds the
// event tape, its blobs, the work tree as the run found it and what the run changed there. Replay runs the program again as a
// closed world, over an overlay of that tree, with every answer taken from the tape, and compares the two tapes lane by lane.
// Fork is a Replay that leaves its tape at some point, and becomes a recording of its own (packages deck/fork, axis/exchange's Fork).
// Where there can be no jail both may run the program outside of it, with a proxy: the Proxy of their options says what
// that costs, and so does every such recording and verdict. ReplayTape runs any program against a bare tape, which has
// exchanges alone, and compares those.
// Deck is where the axes meet: it wires them to the jail; matching, comparing, masking and the formats belong to the packages
// that it uses. What is done with a recording lies below it, and knows nothing of runs:
//
//	recording   the directory: its manifest, paths, locks, masks and the project's key; all others use it
//	secrets     what is known as a secret before a program starts, and a log without any
//	library     .tapedeck: find, list, remove, gc, pack, unpack
//	sealing     the seal of a recording, and the log of sealed ones
//	screen      what a program's terminal showed: followed, compared, told in lines
//	derive      what is made of a recording: the session log, the work tree, answers of tool servers
//	daemon      tells a run to a daemon while it is recorded
//	fork        where a run leaves its recording, and what is changed there
//	follow      records chosen, told while they are made, and with screens in one timeline
//	verify      every line, blob and digest
//	program     the program's file, environment and ports; procgroup its process group
//
// A run that cannot be recorded does not go on as if it were: the first write to the recording that fails ends it (session.fail).
// Nothing more gets on the tape, every exchange is cut, the program is killed with its world, and Record returns a *WriteError;
// the recording stays unfinished. So does that of a jail that is ended from outside. docs/reference/limits.md lists what may fail and what
// may be killed, package integration/kill tries it.
//
// Goals: nothing of the program is changed, nothing gets out of the jail on replay, what was not covered is said. Not goals: several
// programs in one recording, remote hosts.
//
// A program that uses this package calls Enter first thing in main (a test in TestMain): the jail starts its own
// executable again as its init.
package deck
