// Package llm knows the calls of language models on the wire: what makes two of them equal, what they used and what that
// cost.
//
// # What is a call
//
// A Classifier goes by the path of a request and the shape of its body, whatever the host: gateways and local servers
// speak the same protocols. A request that makes a model generate or embed is a call (llm_call) and named by provider,
// endpoint and model; the provider is the protocol, not who runs the server. Everything else is plain HTTP: method, URL
// and body. Some of that, such as counts of tokens and orders of batches, carries a conversation too: what does not count
// in a call does not count there either. The endpoints stand in the provider's files, for people in docs/reference/providers.md.
//
// The body of a call falls into three parts, by the keys that each endpoint lists:
//
//   - the matchable surface: messages, system text, tools, tool choice, thinking. Key.Request is its digest;
//   - parameters: everything else that may change the answer (temperature, limits, response format, streaming, the query
//     of the URL but for credentials). Key.Params is their digest. A key that no list names is a parameter, so that
//     nothing is ignored silently;
//   - what is ignored: it names the caller or tunes caches and books, and never changes the answer.
//
// Inside the surface these are left out or rewritten: marks of cached prefixes (where a prefix is cached, not what it says;
// agents move them at every turn), signatures and encrypted reasoning (opaque echoes of the provider), ids of items, and
// the billing line that Claude Code puts before its system text. Ids that pair calls of tools with results are numbered by
// first appearance. A text that stands as a bare string is taken for the list of one text block that it is short for.
// Arguments and results of tools are content and are never looked into.
//
// A multipart body counts by its parts (name, file name, type, content), never by its boundary, which is made up.
//
// Digests are taken over canonical JSON, after renumbering of placeholders and masking (package scrub). What counts is part
// of what a recording holds: a recording that was made before a list below grew may no longer match, and says so.
//
// # Over WebSockets
//
// Turns of Responses, Realtime and Gemini Live are calls too. A Turns of exchange follows the messages of one socket (Sockets;
// socket*.go) and says which of them begin, belong to and end a turn. The request of a turn is folded: the JSON object of all that the
// model was asked, out of what passed on the same socket, which is read by an endpoint like the body of a POST.
//
// # Lanes
//
// A call without messages (an embedding, a completion, an image) opens a lane of its own with all of its surface.
//
// # Usage and prices
//
// The tape keeps the provider's own usage object. UsageOf reads it into one form; Prices puts a price on that. Prices are
// list prices of a date; what is not known stays unknown, never 0.
//
// # What is said
//
// A Listener reads a conversation out of its calls: who the model is told to be, what the user's side said, what tools gave,
// what the model answered, streamed or whole, of every provider in one form (Said). What a request repeats of the one before is
// compared and not read.
//
// # A provider is a file
//
// All that is one provider's stands in its file: anthropic.go, bedrock.go, cohere.go, gemini.go, gemini_live.go, ollama.go, openai.go,
// openai_responses.go, openai_responses_socket.go and openai_realtime.go. From top to bottom: its endpoints and what of
// their requests counts (endpoint, keys), its errors, how the events of an answer follow one another (protocol), how a request is written
// (Access) and how an answer is, whole and streamed.
//
// What all share stands once: a message, a part, a call, a result (node) and an event (event) are read in any provider's form, and so are
// the other keys of a request (topReaders), usage objects (usage.go) and the framing of streams, both ways (framing.go);
// a conversation in no provider's form (Conversation), an answer on its way to the wire (Completion, Reply).
//
// A new provider is such a file, its endpoints in the list of endpoint.go, its errors in the one of providers, and the names that it has for
// what others have too in the tags of node and event.
//
// Not goals: sending anything, streaming, counting tokens that no provider counted, bills.
package llm
