// Package library is .tapedeck, the directory of a work tree that holds its recordings and cassettes, and pointers to those that
// lie elsewhere: it finds, lists and removes them, takes away what none of them needs, makes one file of a recording and back.
//
// Goals: it is safe beside recorders, replays and other commands; nothing outside of the library is touched that is not a
// recording of it; what is there is never replaced. Not goals: what stands in a recording.
package library
