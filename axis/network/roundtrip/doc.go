// Package roundtrip is an http.RoundTripper that lets nothing out that was not asked for by name, and answers from a tape.
//
//	t, err := roundtrip.New(&roundtrip.Options{Classifier: llm.NewClassifier(nil), Tape: recorded})
//	client := &http.Client{Transport: t}
//
// A request is answered by Options.Tape where that holds it; else it is sent on where Options.Allow names its host; else it is
// refused, before a name is resolved or anything is dialled. So is what a redirect leads to: a client follows it by asking again.
// What is sent asks no proxy of the environment. WebSockets are not carried.
//
// # What is recorded
//
// One record an exchange (Record), when its answer has been given: when the end is passed on, or the body is closed; at once where
// there is no body. What was refused is on no tape. An answer from a tape is recorded as it stands there, however much of it the
// program read. Equal runs give equal records: there is no time of a clock that is not the run's (Options.NowMS, Timed), no ordinal
// of chunks, and arrivals are counted. A live answer holds what its server sent, Date and all.
//
// # Matching
//
// Matching is package exchange's: by the key of Options.Classifier, equal requests in the order in which they arrived while
// recording. A tape is a bare one, as package httptape keeps them too, or that of a recording. Nothing waits for equal requests that
// were under way together: what runs at once is the run's clock's to say.
//
// Concurrency: a Transport may be used by several goroutines at once; bodies of requests are read whole before they are sent.
//
// Package httptape stands on this one (Options.Machine): its answers come by the machine's clock, and go to the store as they come.
//
// Not goals: WebSockets (package network), programs that are no Go (the same), keeping tapes beside tests (package httptape).
package roundtrip
