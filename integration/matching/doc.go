// Package matching proves that concurrent requests get their own answers back from a tape.
//
// Each test runs a small program against a scripted upstream over real sockets, with a network.Server between them that
// records; then the program runs again and again against the tape alone, and the tapes are compared. What holds for every
// scenario: nothing crossed, nothing refused, nothing never asked for, no divergence, and, by the program's own account,
// the same conversations with the same answers. The upstream names in each answer the request that it is for and gives each
// a number; the program checks the first and puts all of it into its next request.
//
// The short form is what a plain go test runs. TAPEDECK_LONG=1 runs 16 conversations of 50 turns and replays each
// scenario 20 times:
//
//	TAPEDECK_LONG=1 go test -timeout 30m ./integration/matching
package matching
