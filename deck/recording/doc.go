// Package recording is the directory of a recording: its manifest, the paths in it, who is at work on it, the masks and the key
// that it was made with. Package deck makes recordings; the packages beside this one list, seal, verify, follow them.
//
// The life of a recording:
//
//	recording.json {"state":"recording"}      written first
//	tree.json, blobs                          the work tree, before the program starts
//	run.tape, run.tape.cas/, run.tape.part/   as the run goes
//	terminal/                                 as the run goes, where the program has a terminal
//	workspace.diff, found-*.json              after the program has ended
//	tree.json, run.tape, again                where a secret became known after it was written
//	session.jsonl                             derived from the tape, where a model was called
//	recording.json {"state":"finished"}       replaces the first one atomically: the recording is whole, and unsealed
//	seal.tiles/, seal.json                    over all of that and the recording.json to come, unless NoSeal
//	recording.json {"sealed":true}            replaces it atomically, last
//	run.seed                                  where it was packed with that: 64 hex digits, the seed of its random numbers
//
// found-*.json have the form of tree.json (package files): what the run found at the paths that it changed in HOME, the temporary
// directory and other places that it may write to, and at those of the work tree that Git ignores. They are partial: what they do
// not name was not changed, and a replay shows it as it is then.
//
// A recorder that is killed at any moment leaves what stands above that moment, each file whole or, the tape, whole up
// to its last record. A tape is never found without its header. So a recording is unfinished, or finished and says that it is not
// sealed, or sealed; package verify passes each of these, and package sealing seals the second. A sealing that fails leaves the second.
//
// What lies in temporary directories (layers, certificates, what is unpacked to be looked at) is locked by the process that made
// it, and goes with the next command where that was killed (library.Sweep).
//
// recording.json is a Manifest, whose fields say what an absent key stands for. A key that is not known is passed by.
//
// Goals: whoever opens a recording trusts nothing that it says; nothing of a tape is held in memory. Not goals: making recordings,
// judging them.
package recording
