// Package exchange holds one HTTP request and its answer in chunks, puts it on a tape, and decides which recorded answer a
// request gets.
//
// # Matching
//
// A request is identified by a Key. Equal keys share a queue in the order in which their requests arrived while
// recording, never in the order of completion; a Book hands each recorded exchange out once. A request whose key is not
// on the tape, or whose queue is empty, gets nothing: the Book names the nearest recorded request instead and the fields
// that differ. Nothing is guessed.
//
// Masks take out of a key what differs in every run, and headers are in none. So two callers may ask by one key for different
// things: two items whose UUIDs stand in the URL, two tenants of one service. Where a tape holds unlike requests of one key,
// their Traits (package lane) decide which answer is whose: first the ids and their places (as they stand, or as an earlier match showed which
// id of the replay stands for which of the recording), then how often the sender has tried before. Where some of these were
// under way together while recording, headers and times tell too: the order of arrival is no program's own there. Elsewhere
// it is, and a header may be drawn at random from a few, and a time equal by chance. Traits never refuse an answer; of
// equally like ones the first by arrival goes.
//
// Callers that are equal in this too are interchangeable: which of them gets which of several answers follows from the order
// of arrival alone. A request gets its place in that order and its answer in one step (Open.Take).
//
// A program may end a request before its answer ends: one of two that it sent to take what comes first, one that took too
// long, a stream that has said enough. The tape holds what had come by then, on either side, which is a matter of moments:
// a replay gives no more than that, and then waits for the program to end the request again. How much the program got until
// then does not gate (package fidelity).
//
// Two equal requests whose answers both came whole are two requests, whichever the program used. Where they were under way
// together, a replay keeps them so: what comes of an answer waits until the equal requests that were there by then are there
// again, else a program would take the first answer before it sent the second request; and of two or three the one that had
// ended first ends first, with a moment for the program to act on it before the next one ends, unless most of many such requests went by
// themselves: these few met by chance. A request that does not come
// holds the others up once, for as long as it took then and two seconds, and is a divergence. Which of two answers that ended
// within a moment a program had seen first no tape tells. A tape without ordinals may hold several runs: there they must have
// been under way together by virtual_time_ms and by monotonic_ms.
//
// A call of a model that nothing answers by its key gets the recorded one that differs in nothing but the order of the results of calls
// of one turn. Side traffic (package sidetraffic) that is not on the tape as it was asked gets
// the last answer of its kind, where TellSideTraffic says so; it is handed out for nothing. Where KeepOrder says so, answers of
// models, and processes, end in the recorded order, as far as the program comes to them.
//
// A recorded answer whose payload is missing, damaged or was never kept cannot be given. The Book remembers it (Damage,
// Damaged): such a replay cannot be compared, which is no divergence of the program.
//
// The identity of a request, and its traits, come from a Classifier: package llm knows the calls of models, everything else
// is plain HTTP. So this package, which network, llm and httptape share, knows no provider.
//
// # Sockets
//
// A request for a WebSocket (Key.Socket) that an upstream answers 101 becomes a Socket, which takes its messages in the order in which
// they pass; any other answer is an exchange. On a replay it is taken like an exchange, and a SocketPlay says what the server
// said: each message once those of the program before it have come, which are known by their masked bytes. Of sockets that were
// opened by equal requests what the program says tells which is which (choice); until then what one is may change. What Turns, of a
// Classifier, knows as a turn of a conversation with a model is an exchange of its own, found by its own key on whichever socket
// it was recorded. Ordinals put its chunks, the other messages and the end of a socket into one order.
//
// # Forks
//
// A Fork divides a Book at one exchange. What arrived before it answers; what a run asks for once it has come there is its own, and is sent on
// (Open.SendOn) or, of a closed one, answered by what was recorded later. A run that asks for something else before that never comes there.
// A conversation over several exchanges may go on there with its server itself (Live).
//
// # Lanes
//
// A lane is what two recordings compare side by side: one conversation with a model, one WebSocket, or one host's plain HTTP.
// Conversations are named by the digest of their opening (system text and first user message), "#2" for a second equal
// one; the rules stand at Lanes. A replayed exchange takes the lane of the recorded one that answered it.
//
// # Recording
//
// A Tap takes exchanges from the arrival of a request (Begin) over each chunk of its answer to the end (End). Everything
// that it writes has been scrubbed; the program gets its own bytes from whoever calls. On a replay the bytes of the tape
// are what there is to give: network puts the program's own values into them where it is told these (Config.Reveal), and
// else a later request that holds a placeholder matches all the same, for digests are taken after renumbering.
//
// The chunks of the stored answer are those that came, in order. Their offsets and lengths are those of the stored bytes:
// a secret that spans chunks counts to the one in which it began, so a later one may be empty. An answer of more than
// 500,000 chunks keeps that many: the last one holds the rest.
//
// A body with a Content-Encoding can only be scanned decoded. It is held in memory, up to TapOptions.MaxBody, and stored as
// it came; where a secret lies inside, what is stored is the decoded and scrubbed body, its headers Content-Encoding and
// Content-Length are left out, and its chunks end where the decoder stood when it asked for the next one. What cannot be
// scanned is not stored. A record of such an exchange has one more key, a string:
//
//	request_decoded, response_decoded   the Content-Encoding that was taken off
//	response_length                     the Content-Length that was taken off, of an answer that was not decoded
//	response_trailers                   the fields behind the body of the answer, a list of header fields
//	answered_after                      how far the request had come at each step of its answer, a list of integers (BeginStream)
//	request_lost, response_lost         why the body is not kept; response_lost stands in "error" too
//
// # Names
//
// What names in the query, the body or the answer give away (password, refresh_token, client_secret; package scrub has the
// rule) is made known to the scrubber before any of that message is written or matched. Bodies are not parsed for it: one pass
// looks at what stands before each colon. An answer that is JSON or a form waits for it in memory, up to 1 MiB; of a longer one,
// and of events and lines, each chunk is looked at for itself. A request that names another secret than the recorded one which
// it matches puts that in its place: it reads as the recorded one from then on, and Scrubber.Reveal gives it. Tapes of
// scrub.RulesForeign are compared without all of this, but for scrub.Options.SecretNames.
//
// # Durability
//
// An answer without Content-Encoding is appended to its part, a file of its own, as far as the scrubber has released it,
// before Chunk returns, and put into the store in bounded memory at the end. Before End returns the record and its blobs
// are with the kernel. A recorder that is killed leaves parts, which Parts reads as exchanges with the error "recorder
// ended"; of an encoded answer, and of JSON of up to 1 MiB, a part holds the head alone. What cannot be
// written ends the recorder, and with it every exchange: none goes on that would be on no tape.
//
// An answer that passes from one tape to the other as it stands (Open.Replay) is neither scrubbed nor looked into again, its
// payload is shared by the two stores, and its record waits in the tape's buffer: what it says stands on a tape already.
//
// # Both sides of an exchange
//
// What whoever speaks HTTP on either side of a Tap or a Book needs stands here once: the fields that are passed on (EndToEnd,
// SetHeader), the body of a recorded answer at its times (OpenAnswer), the words for what cut an exchange (ErrorText) and the errors
// that they stand for (ErrorAgain), and the answer to a request that is refused (Refusal, ErrorBody). For an http.RoundTripper there
// are RequestOf, Outgoing and Recorded.Response.
//
// Not goals: speaking HTTP (package network), knowing providers (package llm), comparing tapes (package fidelity).
//
// Concurrency: a Tap, a Book and a Lanes may be used by several goroutines at once, an Open by one at a time.
package exchange
