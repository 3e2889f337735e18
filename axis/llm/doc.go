// Package llm knows the calls of language models on the wire and tells an exchange.Book what makes two of them equal.
//
// A Classifier tries its providers by the path of the request and the shape of its body, whatever the host: gateways and
// local servers speak the same protocols. What no provider takes is plain HTTP: method, URL and body.
//
// The body of a call falls into three parts, by the keys that each provider's file lists:
//
//   - the matchable surface: messages, system text, tools, tool choice, thinking. Key.Request is its digest;
//   - parameters: everything else that may change the answer (temperature, limits, response format, streaming, the query
//     of the URL but for credentials). Key.Params is their digest. A key that no list names is a parameter, so that
//     nothing is ignored silently;
//   - what is ignored: it names the caller or tunes caches and books, and never changes the answer.
//
// Inside the surface these are left out: cache_control marks (where a prefix is cached, not what it says; agents move
// them at every turn), signatures and encrypted reasoning (opaque echoes of the provider), ids of items and function calls
// that the provider gave and the client echoes where another field pairs them, and the billing line that Claude Code puts
// before its system text. A text that stands as a bare string is taken for the list of one text block that it is short
// for. Arguments and results of tools are content and are never looked into.
//
// Digests are taken over canonical JSON, after renumbering of placeholders and masking (package scrub).
//
// Not goals: sending anything, streaming, knowing prices, calls other than generation (embeddings, token counts and
// lists of models are plain HTTP).
package llm
