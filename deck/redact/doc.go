// Package redact makes of a recording another one without what a person names: an address, a customer's name, a text.
//
// Goals: nothing of what is named is left anywhere in the new recording, in none of the forms that package scrub knows, or there is no new
// recording. It stands by itself: its digests, its session log and its seal are made anew, and it replays as one does in which a secret
// became known late, for it goes through the same pass (package rescrub). The recording that it is made of is never changed.
//
// Not goals: finding what nobody named; package scrub does that while a recording is made.
//
// A Rule finds texts. First all that a recording holds is looked through by the rules: files, bodies as their encodings have them, strings of
// JSON, and what is percent-encoded, base64 or hex in those. What they find are values, and each value is then replaced wherever it stands,
// also where the rule itself would not find it: in the chunks of a stream, on the terminal. At the end the new recording is looked through by
// both, rules and values.
//
// Placeholders are those of secrets: td_<rule>_<12 hex>. Paths of the program, its directory and its roots stay, for a replay needs them as
// they are: a recording that has a value in one is refused. What is no file of a recording is not taken along.
//
// Ordering: all of it happens in a directory beside the new one's place, whose name is the last step. Whoever is killed before leaves
// nothing there, and what is left beside goes with the next redact.
package redact
