// Package exchange holds one HTTP request and its answer in chunks, puts it on a tape, and decides which recorded answer a
// request gets. It knows no provider and speaks no HTTP: network, llm and httptape share it.
//
// # Matching
//
// A request is identified by a Key, which a Classifier finds. Equal keys share a queue in the order in which their requests arrived
// while recording, and a Book hands each recorded exchange out once. A request whose key is not on the tape, or whose queue is empty,
// gets nothing: the Book names the nearest recorded request and the fields that differ. Nothing is guessed.
//
// Masks take out of a key what differs in every run, and no header is in it, so two callers may ask for different things by one key.
// There their Traits (package lane) decide which answer is whose: ids first, then how often the sender has tried before. Headers and
// times count only where such requests were under way together; elsewhere the order of arrival tells more. Traits never refuse an answer.
// A request gets its place in the order of arrival and its answer in one step (Open.Take).
//
// An answer that the program had ended before its end is given as far as the tape has it; then the replay waits for the program to end it
// again. How much came until then does not gate (package fidelity).
//
// Equal requests that were under way together, and came whole, stay so on a replay (equals): what comes of an answer waits until the
// requests that were there by then are there again, else a program takes the first answer before it sends the second request. Of two or
// three the one that had ended first ends first, with a moment for the program to act on it. A request that does not come holds the others
// up once, for as long as then and two seconds, and is a divergence. A tape without ordinals may hold several runs: there the requests
// must have been under way together by virtual_time_ms and by monotonic_ms.
//
// Where no key fits, a call of a model gets the recorded one that differs in nothing but the order of the results of one turn's calls, and
// side traffic (package sidetraffic) the last answer of its kind, where TellSideTraffic says so. With KeepOrder answers
// and processes end in the recorded order, and threads wake in it. An answer whose payload is missing or damaged cannot be given; the Book remembers it
// (Damaged), and such a replay cannot be compared.
//
// # Sockets
//
// A request for a WebSocket (Key.Socket) that an upstream answers 101 becomes a Socket, which takes its messages in the order in which
// they pass. On a replay it is taken like an exchange, and a SocketPlay says what the server said: each message once those of the program
// before it have come, which are known by their masked bytes. Of sockets that were opened by equal requests what the program says tells
// which is which (choice). What Turns, of a Classifier, knows as a turn of a conversation with a model is an exchange of its own, found by
// its own key on whichever socket it was recorded.
//
// # Forks
//
// A Fork divides a Book at one exchange. What arrived before it answers; what a run asks for once it has come there is sent on
// (Open.SendOn) or, of a closed one, answered by what was recorded later. A conversation over several exchanges may go on there with its
// server itself (Live).
//
// # Lanes
//
// A lane is what two recordings compare side by side: one conversation with a model, one WebSocket, or one host's plain HTTP. The rules
// stand at Lanes. A replayed exchange takes the lane of the recorded one that answered it.
//
// # Recording
//
// A Tap takes an exchange from the arrival of its request (Begin) over each chunk of its answer to the end (End). Everything that it
// writes has been scrubbed; the program gets its own bytes from whoever calls. On a replay the bytes of the tape are what there is to
// give, into which network puts the program's own values where it is told these.
//
// Chunks count the stored bytes: a secret that spans several counts to the one in which it began. An answer of more than 500,000
// chunks keeps that many: the last one holds the rest. A body with a Content-Encoding can only be scanned decoded. It waits in memory, up
// to TapOptions.MaxBody, and is stored as it came, or decoded and scrubbed where a secret lies inside; what cannot be scanned is not
// stored. The record of an exchange may have more keys, strings but for the last two:
//
//	request_decoded, response_decoded   the Content-Encoding that was taken off
//	response_length                     the Content-Length that was taken off, of an answer that was not decoded
//	request_lost, response_lost         why the body is not kept; response_lost stands in "error" too
//	response_trailers                   the fields behind the body of the answer, a list of header fields
//	answered_after                      how far the request had come at each step of its answer, a list of integers (BeginStream)
//
// What names in the query, the body or the answer give away (password, refresh_token) is made known to the scrubber before any of that
// message is written or matched. Bodies are not parsed for it. An answer that is JSON or a form waits for it in memory, up to 1 MiB;
// of a longer one, and of events and lines, each chunk is looked at for itself. A request that names another secret than the recorded
// one which it matches puts that in its place. Tapes of scrub.RulesForeign are compared without all of this.
//
// # Durability
//
// An answer without Content-Encoding is appended to its part, a file of its own, as far as the scrubber has released it, before Chunk
// returns; before End returns the record and its blobs are with the kernel. A recorder that is killed leaves parts, which Parts reads as
// exchanges with the error "recorder ended"; of an encoded answer, and of JSON of up to 1 MiB, a part holds the head alone. What
// cannot be written ends the recorder, and with it every exchange. An answer that passes from one tape to another as it stands
// (Open.Replay) is not scrubbed again, and its record waits in the tape's buffer.
//
// Concurrency: a Tap, a Book and a Lanes may be used by several goroutines at once, an Open by one at a time.
package exchange
