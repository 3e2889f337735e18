// Package fidelity compares two event tapes and says where they differ.
//
// Bare tapes compare by position (Compare, CompareTapes), recordings lane by lane (CompareLanes); the mode says what
// must match. The result is a Report: a code for every divergence, text that a person understands at a glance, and JSON
// whose keys are a contract. DiffJSON, which explains a request that changed, stands by itself.
//
// What counts: ByteIdentical compares every field. Semantic leaves out phase, virtual and monotonic time, the ordinal g,
// the place of a request in the order of arrival, the times of chunks, the duration of a process, the latency of MCP and
// the length of a file. Between lanes the headers of answers, stdin and keys without a meaning only count byte by byte too, those of
// requests as LaneOptions.Headers says. A fact counts once: the payload behind a digest that differs is no second divergence. Tapes
// of which one does not have all keys compare by those that it has (Keys).
//
// Between lanes a digest taken after masking pairs records, and says whether two may be equal. Where the bytes differ all the same they
// are held against each other place by place, under the masks of now. What a mask takes out is a MaskedPair, which leaves a doubt
// unless a person wrote the mask or no run can give the value again; a MaskedValue where both runs were given the same time and
// randomness (LaneOptions.Exact), and where the value is known to be no chance. What no mask takes out is what its field is.
//
// What two terminals showed compares in a lane of its own (Screens), in the place of the bytes that drew it where that is asked
// for: the screen whenever something was typed, and at the end. What moves by itself while nothing is typed or answered is
// left out of its row, named and counted.
//
// Two answers of a model whose bytes differ are the same where LaneOptions.AnswerSurface makes them so, unless bytes count.
//
// What gates between lanes: exchanges, processes, the program's exit and output, files of the work tree and those
// watched. Requests that no upstream answered, other files, order within a lane, refused connections that the replay no
// longer tries and how often a recorded upgrade was refused (tape.Exchange.UpgradeRefused) are notes. So is what Git keeps of its own
// in a .git: its index holds times, as do its commits, and so refs
// and logs. Hooks, config and info there gate.
//
// Side traffic (package sidetraffic), plain HTTP that nothing depends on, is compared and does not gate: Report.Side says how it
// differs, and Report.Strictly counts it. Nor does the order count in which the results of calls of one turn stand
// (LaneOptions.InCallOrder), which is a note.
//
// An exchange that the program itself ended early gates as a request only: how much of the answer had come by then is a
// matter of moments, in both runs. One that was recorded so and that the replay never asks for is a note where none of its
// answer had come, or where the replay got an answer to the same request. Of requests that are equal, which of them got
// which answer does not gate either: they are paired by what came of them.
//
// What was under way when a program ended (tape.EndedKey) was waited for by nobody. It is a note whether or not the other side
// has it, and so is what follows it in its lane, on the replay though nothing recorded is like it.
//
// Conversations with tool servers compare by what was asked and answered: their records are paired by the digests of parameters in
// the order in which lines were written, so that answers in another order are none, and a conversation that one side lacks is one
// divergence. What a server wrote to stderr is a note, the HTTP that carried messages is not compared beside them, and a call that
// its own side did not wait for gates as a request only. Messages of WebSockets compare masked, by direction and in order.
//
// Ordering: by position, divergences stand in the order of the tapes, in PhaseAware those of the program first. By lane
// they stand in the order in which the replay came to them, so that a cause stands before what follows from it; what the
// replay never did stands where its lane had come to, and not before the first refused request unless its thread had gone on by then.
//
// Explaining: bodies that differ are compared by structure (DiffJSON). A divergence follows from an earlier one, or from an
// input of the runs, where its new text stands there on the replay and did not as recorded; a common word by itself shows
// nothing. What comes after a refused request, and what was not done after it, follows from that request. Where the tapes
// show neither, nothing is claimed, but that the program had another command line where it had. The first divergence before
// which nothing differs is taken for the cause, and the text says so; a mere drift of times is never called one.
//
// Memory and time: comparing by position holds a bounded number of records of each side; lanes and alignment hold the records
// of both tapes, never their payloads. Two tapes are read at once, by a goroutine each that has ended when the comparison has.
// No payload is hashed again, and none is read but to explain a divergence (of 500 divergences, 96 MiB of one payload and
// 256 MiB in all at most), to see whether two answers of models differ in their ids alone (8 MiB of one, 256 MiB in all), and what
// masks hide (512 MiB in all). A Report lists MaxDivergences and MaxMaskedPairs and counts the rest.
//
// Compatibility: categories and JSON keys are never renamed. Messages and causes are for people and may change.
//
// Not goals: reading recordings from a directory (package deck), deciding exit statuses (the command line).
package fidelity
