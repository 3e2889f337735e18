// Package gate replays the recordings and scripts below some paths, several at once, and says which of them hold: what a pull request
// is gated on.
//
// Goals: a directory full of recordings, packed or not, is one question with one answer. Each gets a status of its own, whatever
// becomes of the others: one that hangs, is damaged, was written by a newer version or whose program is not there stops nobody. Nothing
// on the disk changes: a packed recording is opened in a temporary directory.
//
// Not goals: recording, taking a new run as the reference, judging: package fidelity does that.
//
// What a case is held to stands in the nearest tapedeck.yaml beside its recording or above it, up to the top of its repository:
// masks, headers and side traffic as for every recording, which hold here in place of those of the recorded work tree, and
//
//	test:
//	  mode: semantic                # what must match
//	  watch: ['~/.agent/*']         # paths that gate too
//	  timeout: 2m                   # of one replay
//	  expect:                       # divergences that are known
//	    - diverges: goodbye.txt     # its category, or a part of its message
//	      recordings: smoke-*       # names of recordings, as path.Match has them; all
//	      reason: the prompt changed on purpose
//	      until: 2027-03-01         # from that day on it is red again
//
// Ordering: results are given in the order in which they end, a Summary has them in that of their paths. Each replay has an own jail,
// work tree, clock and tape (package deck); nothing is shared between two but the processors.
//
// Reports: JUnit (what junit-10.xsd of Jenkins takes), SARIF 2.1.0, annotations and the step summary of GitHub's workflows.
package gate
