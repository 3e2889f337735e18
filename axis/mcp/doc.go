// Package mcp is the MCP boundary of a run, both halves: it records what an agent and its tool servers say to each other, and it
// answers the agent from a tape with the servers gone.
//
// What passes is recorded as the program saw it, whatever it is. No byte of it changes, and nothing waits but the end of a line that
// holds an answer, for its record. A server is known by what is said to it, not by its name. A replay matches by what is asked, and
// never by ids. What a method means is nobody's business here: a message is JSON-RPC 2.0 with a method, params, a result. Who starts
// servers, HTTP and the jail are brought by deck and network.
//
// # Grammar
//
// A line of stdio ends in \n. It is one message or a list of them (a batch), or it is text: what is no JSON, no JSON-RPC 2.0, or an
// answer to nothing that was asked. A server's last line without an end is text, for who reads lines never sees it; the client's is a
// message where it is one, for some servers answer it.
//
// What passes over stdio is a conversation when the client's first line that is not blank opens one (opening): of MCP, or of an agent
// (ACP); a protocol says what differs between the two. Until then it is undecided; anything else is copied as it comes.
//
// Over HTTP (OverHTTP) a POST is one line of the client, and an answer is one line of the server if it is JSON, or one for each event that
// is a message. A line belongs to the conversation of its session: that of Mcp-Session-Id; without one that of the URL; of HTTP+SSE that
// whose first event named the URL. The first request of a conversation is one of its lines once the server answers it as a server of MCP
// does: one that gets 401 or 405 stands in its exchange alone. A request that an exchange ended without an answer to is cut then, unless
// the answer may come in another: the stream had event ids, or the answers come on the GET.
//
// # Records
//
// A request and its answer are one mcp_json_rpc, written when the answer came; a notification is one, at once. What gets no answer has its
// record at the end of the conversation, with the reason. Payloads are the lines as they stood on the wire, redacted, without the \n, or
// the messages of a batch. Text is mcp_text: lines that follow each other are one record, and so is what came on stderr since the line
// before, of this conversation or another. The mcp_open stands before all of them and has the server's name, so records wait in memory
// until the server has told it, 256 at most. Other producers write calls alone; a Book reads those too.
//
// # One mechanism
//
// A Book reads each conversation of a tape into a transcript, and from that its script, the lines of internal/lane. That package decides
// which recorded line a message of the program is, what is due, how long it is held, and what was never asked for. This one is its codec
// for JSON-RPC: a request is known by its method and params (requestKey), a recorded message gets the ids and tokens of this run
// (Book.message, editsOf), and a refusal names what is nearest (notOnTape).
//
//   - Over stdio (player) one goroutine hears the client, and another writes what lane.Player says is due.
//   - Over HTTP (webPlayer) package exchange knows which recorded exchange answers; the lines of that exchange have come, and those of its
//     answer pass when they are due.
//   - Past a fork's point a server over HTTP goes on by itself (liveSession): its own session is told what the tape has answered, and takes
//     the place of the recorded one.
//   - A lenient client (session) keeps to no order, and has no script: each of its requests gets what the server said within it, and the
//     answer. Equal requests go on to the next scene, and the last one stays.
//
// # Order
//
// Every line of a conversation has a place (arrival), both directions counted in the order in which they passed through the recorder. Stderr
// is another stream, whose place beside the lines is about right. What several servers write to their stderr, which may be one, keeps its
// order line by line from the first answer of each on, and so do their answers; a line that one writes in pieces stands where it ended, and
// a key of several lines too. Before that answer the tape does not tell when it came.
//
// A server that ended first ends again when all of that has come, and the last notification or text of its client too, for it may have
// ended for that; not before it did if a request was open or a signal ended it, for then its client may have lost patience.
//
// Over HTTP the order holds across streams: a line of the server also waits for what the server said before on other streams that are
// open. Notifications but initialized, and pings, hold nothing up. An answer that came apart from a notification before it comes up to 50
// ms after that, for the client to read it first. A GET stream ends when all that was recorded before its end has come, and never by
// itself where the program had ended it.
//
// # What is compared
//
// params_digest and result_digest are BLAKE3 of the canonical JSON (RFC 8785) of the params, the result or the error, of the redacted message,
// placeholders renumbered and volatile facts masked (package scrub). Left out is what each run makes up: ids of requests, progress tokens,
// and traceparent, tracestate, baggage and subscriptionId in _meta; an empty _meta is none, and no params are {}. request_digest and
// response_digest are of the redacted bytes themselves.
//
// # Secrets
//
// Each message is scrubbed as a whole, within its strings: it stays JSON. What the name of a member tells of a secret is learnt first. A
// number that is a secret becomes a string; so does, whole, what a secret reaches over the end of. Text is scrubbed as one stream for each
// source, for a key may be spread over its lines. A replay puts a program's own values back where they are known.
//
// # Durability and limits
//
// When Conversation.Line returns for an answer, its record and all before it are with the kernel (tape.Recorder.Flush), and only then
// does a Relay pass the end of that line on, but for answers that come before the server told its name. Text waits for the next message,
// up to 64 KiB of it.
//
// A line of more than MaxLine passes and is not kept; the end of its conversation says so, and Log.Lost. Requests that were open then, and
// stay so, say it too: a replay answers them with an error. Before a relay is decided 256 KiB of what the server writes are kept, and a
// first line of more than 1 MiB opens nothing.
package mcp
