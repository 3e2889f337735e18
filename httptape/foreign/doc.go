// Package foreign makes bare tapes of the HTTP recordings of other programs: HAR 1.2 (browsers, proxies), the cassettes of go-vcr
// (Go), and those of VCR (Ruby) and vcrpy (Python, pytest-recording too).
//
//	im, err := foreign.Detect("network.har")
//	report, err := im.Import(ctx, "network.har", "testdata/chat.tape", nil)
//
// What comes out is what package httptape would have recorded: calls of models are llm_call records, everything else is
// http_exchange, with the same digests and lanes, and the secrets replaced by numbered placeholders. httptape answers from it,
// tapedeck show, diff and verify read it, tapedeck replay FILE.tape -- CMD runs a program against it.
//
// # Two passes
//
// A file, of at most MaxFile bytes, is read as a whole: each exchange is looked through for secrets. Then, in order, each is scrubbed by
// what the whole file told, classified, and written. A tape that could not be finished is not there: it gets its name, by a
// rename, when it is whole, and blobs that it put into NAME.tape.cas go again.
//
// # What is not kept
//
// Chunks: none of these formats has them, so an answer is one chunk that came at the end. The order of header lines and the
// letter case of their names, as in httptape. What a format adds of its own (pages, cookies that were taken apart, sizes,
// initiators). What could not become an exchange is counted in Report.Skipped with the reason; what was changed is told in
// Report.Notes.
//
// Not goals: writing these formats, recording, matching as those programs do (httptape's matching is package exchange's).
//
// Concurrency: an Importer may be used by several goroutines at once.
package foreign
