// Package mcptext says in a few words what a message between an agent and its tool server holds, for people: the tool and its
// arguments, the first words of an answer, the code of an error.
//
// It reads JSON-RPC messages as they stand on a tape, and never fails: of a message that ends too early (the first bytes of a
// long one), or that is none, it says what there is. Time and memory are of the order of the bytes that it is given; the caller
// bounds those. The text is one line as long as Max allows, with the control characters of others still in it: whoever writes it
// to a terminal escapes them (package visible).
//
// Not goals: what a message means to a server, checking it, finding messages that are equal.
package mcptext
