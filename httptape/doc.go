// Package httptape records what a Go program asks over HTTP and answers it from the tape: an http.RoundTripper for any
// test, in three lines.
//
//	tr := httptape.New(t, "testdata/chat", nil) // records where there is no tape, answers where there is one
//	client := tr.Client()
//	res, err := client.Get("https://api.example.com/v1/models")
//
// The first run makes testdata/chat.tape; every further one needs no network and no key. A request that is not on the tape
// is an *UnmatchedError that names the nearest recorded one and what differs, and fails the test, as does a recorded
// exchange that nobody asked for. TAPEDECK_RECORD=1 go test records anew; where CI is set nothing is ever recorded unless it
// says so (see RecordVariable and Mode). docs/library.md is the guide, with a table for who comes from go-vcr.
//
// # What is matched
//
// Matching is package exchange's: calls of models (package llm) by provider, endpoint, model, parameters and conversation,
// everything else by method, URL and body, JSON in canonical form, after volatile facts were masked (package scrub). Equal
// requests are answered in the order in which they arrived while recording. Nothing is guessed. Headers matter where
// Options.Headers names them. The host is the one that the request names (Request.Host), the port of a loopback address is
// masked: a tape that was recorded against an httptest.Server answers for the next one.
//
// # What is on disk
//
//	NAME.tape       one line a request, in order of arrival: package tape's format
//	NAME.tape.cas/  bodies of more than 4096 bytes or that are not text, under their digest; absent where there is none
//
// tapedeck show, diff and verify read it, and a Transport reads the run.tape of a recording of tapedeck. Into Git go both. A
// recording changes as few lines as it can: an exchange that says what the old tape says keeps its line, times and chunk
// boundaries of the old one and all; Date and what is masked in headers do not count. To have everything new, remove the
// tape first. The monotonic_ms of a record counts from the beginning of the recording that made it, so on a tape of several
// recordings it goes back. Records have no ordinal and no arrival; the header names the version that wrote it, of which another one that
// records the same leaves the tape as it is. Beside the keys of the format a record may
// have
//
//	proto               the protocol of the answer where it is not HTTP/1.1
//	response_trailers   [[name,value]…]
//
// # Durability
//
// A recording waits in memory. Close puts new blobs beside the tape, then the tape in its place by a rename, then removes blobs
// that nothing names. A process that is killed leaves the old tape whole, or the new one; so does a recording that failed, of
// which an answer could not be kept, or whose test failed.
//
// # Secrets
//
// What is written goes through package scrub: values of headers, query values and environment variables whose names say so,
// known shapes, Options.Secrets, Options.SecretNames. So do members of JSON and fields of forms whose names say so, which
// docs/reference/secrets.md lists. A value that turns out to be a secret late is taken out of what was recorded before: only memory and the
// file without a name held it until Close, and a process that is killed leaves neither.
//
// Placeholders are numbered by first appearance (td_authorization_000000000001). So the tape holds nothing that was computed
// from a secret, and who records again with another secret writes the same bytes. No key is needed and none is kept.
//
// While recording the program gets its own bytes, on a replay those of the tape: a token in an answer is then its
// placeholder, and a request that holds it matches.
//
// # Answers
//
// While recording, one read of the upstream is one chunk, passed on as it came; the end is recorded before it is passed on.
// On a replay a Read gives bytes of one recorded chunk at most, at once or as Options.Speed says; the head comes with the
// first chunk, for a tape does not say when it came. An answer that its caller
// closed before the end was seen is recorded as cut (where the end does not come within 200 ms of Close), and so is one
// that was still open when the Transport was closed; who reads on beyond the cut on a replay gets a *RecordedError. Errors
// of an upstream come again as far as their kind is known: see RecordedError. An explicit cancel waits for the caller to
// cancel again, for as long as the recording had gone on by then and ten seconds; a deadline that passed is given at
// once unless Speed says otherwise.
//
// What http.Transport decodes for its caller is kept decoded. A body that the caller decodes itself is kept as it came, unless
// a secret lies inside: then it is kept decoded, and Content-Encoding goes. Kept are trailers and the protocol's version; not
// kept are Response.TLS and Response.Uncompressed, informational answers, and the order and letter case of headers. Bodies of
// requests are read whole before they are sent, so a call that wants an answer while it still sends does not work.
//
// Ordering: records stand in the order in which requests arrived. Concurrency: all is safe for several goroutines; equal
// requests that are under way at once are interchangeable. Memory: records and request bodies; bodies of answers are
// streamed, those with a Content-Encoding held up to Options.MaxBody.
//
// Not goals: WebSockets (Options.Passthrough sends them on), programs that are not written in Go (the tapedeck command), a
// mock that is written by hand.
package httptape
