// Package lane plays the far side of recorded conversations. It is the one mechanism by which a replay answers messages from a tape:
// those of MCP servers and agents over stdio and over HTTP, those of WebSockets, the ends of answers that a program had side by side,
// commands of a process tape, and a testbench's calls of tools.
//
// # Terms
//
// A conversation has two sides: the program, which is run again, and the far side, which is not there any more. A Line is one message
// of either at its place in the recorded order. A codec is who knows a protocol: it reads lines from a tape, says by which key a
// message of the program is known, puts this run's ids into what is said, and words refusals. This package knows none of that.
//
// # The rule
//
// A line of the far side is due when the program's lines that stand before it have come. Which recorded line a message of the program
// is follows from its key: of equal ones the one most alike, then the first that has not come. A line that belongs to a request is
// said only where that request has come. What does not come holds up what stands behind it once: for as long as it took while
// recording, and a slack. From then on it is waited for no more, and is answered at once should it still come.
//
// Lines may be carried by several streams (the exchanges of one session, the servers of one program). A line then also waits for
// those of other open streams that stand before it; a stream that is waited for in vain is waited for no more.
//
// # Pieces
//
//   - Hold waits for a condition, with a limit after which something is given up. Every wait of a replay is one.
//   - Order keeps lines in their order for callers that each bring their own line (Await, Passed).
//   - Gate holds up what is to come until what came before it while recording has come again, in whatever order. A wait in vain ends all of its
//     waits, or, for what may come by chance, those for one who stayed away that often.
//   - Queue is the recorded messages of one key, each handed out once: of those left the one whose Traits are most like what is asked, then
//     the first. Whose queue it is decides what it is for, requests that were sent twice for one answer say, and sockets whose server's
//     messages tell only later which was meant, which it then gives back (GiveBack).
//   - Names say which id of this run stands for which of the recording, by what matches show.
//   - Player is an Order that also finds what a message of the program is (Find, Came; Take is both) and says what is due next (Next). Who
//     carries the far side's lines by itself asks when one is due (Await) and tells that it passed (Said).
//   - Nearest finds the recorded message that is most like one which is on no tape, and Refused keeps what was refused.
//
// # Time
//
// All of it goes by a Clock that is handed in; nil is the real one. Nothing here starts a goroutine.
//
// # Not goals
//
// Reading tapes, formats of messages, secrets and masks, writing to anybody.
package lane
