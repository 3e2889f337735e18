// Package fork says where a run leaves its recording, and what is changed there.
//
// A Tape is the model calls of a recording, by conversation: a Point is found in it by the turn of a conversation or by the seq of a
// record. A turn is one answer of the model; a call that failed and was tried again is of the turn of that answer.
//
// A Document is what can be changed at a point, as people edit it: the recorded answer of its turn, the system text and what tools gave, as
// far as they stand in the request of that turn. What differs in an edited one are Changes: the answer is given to the program in the place
// of the model's (Made), the rest stands in each request that leaves from there on (Changes.Of).
//
// Not goals: running a program (package deck), wires of providers (package llm).
package fork
