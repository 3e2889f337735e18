// Package bare holds what a bare tape is written and read by: one that stands by itself, with no recording around it, as
// httptape keeps it beside tests and httptape/foreign makes it of the cassettes of others.
//
// Its secrets are placeholders that are numbered by first appearance (Numbers), so nothing on it was computed from a secret and
// nobody needs a key. Its requests compare after the masks of NewMasker: who answers from it must mask the same. Its header says
// by which version of the shapes its secrets were found (RulesOf).
//
// Concurrency: a Numbers is used by one goroutine at a time.
package bare

// The keys that a record of a bare tape has beside those of its kind.
const (
	KeyProto    = "proto"             // the protocol of the answer where it is not HTTP/1.1
	KeyTrailers = "response_trailers" // [[name,value]]
)
