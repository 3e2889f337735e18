// Package exchange holds one HTTP request and its answer in chunks, and decides which recorded answer a request gets.
//
// A request is identified by a Key. Equal keys share a queue in the order in which their requests arrived while
// recording, never in the order of completion; a Book hands each recorded exchange out once. A request whose key is not
// on the tape, or whose queue is empty, gets nothing: the Book names the nearest recorded request instead and the fields
// that differ. Nothing is guessed.
//
// The identity of a request comes from a Classifier: package llm knows the calls of models, everything else is plain
// HTTP. So this package, which network and llm share, knows no provider.
//
// Lanes: a lane is what two recordings compare side by side: one conversation with a model, or one host's plain HTTP.
// Conversations are named by the digest of their opening (system text and first user message), "#2" for a second equal
// one. A replayed exchange takes the lane of the recorded one that answered it.
//
// Concurrency: a Book and a Lanes may be used by several goroutines at once.
package exchange
