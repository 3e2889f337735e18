// Package scrub takes secrets out of what is written.
//
// A Scrubber knows the secrets of one run (values of variables and headers whose names say so, exact values it was told) and shapes
// (provider keys, Bearer, Basic, URL credentials, PEM blocks, and the rules of gitleaks, which tools/gitleaks wrote down in gitleaks.go).
// Every byte that reaches the disk goes through it, as a whole or as a stream; it replaces each secret by a placeholder:
//
//	placeholder = "td_" rule "_" [ form "_" ] 12 hex digits of HMAC-SHA256(project key, value)
//
// which is stable within a project, so that a request that held a secret still matches. The rule is the name of the
// variable or header in lowercase, or that of the shape; a known value wins over a shape. The form says in which disguise a
// known value stood, so that Reveal can put it back in the same. The program always gets its own bytes: only what is
// written is scrubbed. Streams are scanned across the boundaries of chunks: a Writer holds back what could be the beginning
// of a secret, and passes on what the whole would have given. What cannot be scanned is not written.
//
// A known value is found plain, under percent-encoding (twice too) and JSON escapes (JSON within JSON too, and any mixture),
// as base64 in either alphabet wherever it begins in it, in lines or not, and as hex; in a stream of server-sent events also
// in the texts of several events. Of base64, the digits go that hold any bit of the value. Bytes looks into what gzip, zlib
// and Git compressed; a Writer does not, and other compressed text is for the caller to decode. Not found are a value of
// fewer than 8 bytes, a common word, a value that is cut in two by something else, and a key of an unknown shape that nobody
// named. docs/reference/secrets.md says all of it for people.
//
// The rooms, each of which leans on those before it. Scanning: scan.go says what a text and a find are, and asks rules (rules.go, leak.go)
// and patterns of known values (known.go, walk.go, bridge.go) what begins at a place. Knowing: memory.go holds what is known and puts
// placeholders in its place, in a stream and in what is compressed by writer.go; seek.go recognises what a replay lacks. Names: body.go and
// bodytext.go walk through a body, pieces.go through a variable, hider.go through headers and URLs; package names tells what each name
// says. The Scrubber: scrubber.go scrubs, learn.go makes known. Replays: dummy.go makes up what is missing, pieces.go puts values back. Package
// masks takes volatile facts out of what is compared, and package tty finds secrets on a terminal.
//
// Names. What the names in the body of a message give away (members of JSON, fields of forms) Named tells, without parsing it,
// and LearnAll makes known, before any of that message is scrubbed; HideAt hides what is too many for that.
//
// Late. What became known after something was written Mark and Since tell: Since looks for that alone.
//
// Cost. A text is looked at once, and a filter of three bytes lets most places pass by: a new rule costs where it may
// begin, not everywhere. Bytes passes by what it has seen before. Expressions are compiled when their literal is first met.
//
// Not goals: parsing JSON, speaking HTTP, deciding what is compared.
package scrub
