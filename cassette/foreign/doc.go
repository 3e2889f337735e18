// Package foreign reads terminal recordings that other programs made, and writes those that they play.
//
// Read are asciicast v1, v2 and v3 (asciinema), ttyrec, and the typescripts of script(1) with their timing: the old one of two
// columns and the advanced one, whose lines name a stream. Written are asciicast v2 and v3. A file may be packed with gzip or
// bzip2. Its format is told by its content, never by its name.
//
// Every format is a Header and a stream of Events. Streams are bounded: one event is held, of at most MaxData bytes, however
// long the file is; but an asciicast v1 is one JSON object, and in memory as a whole. A file that is cut at its end gives what is whole and a note; anything else that is wrong is an *Error with
// the line or the offset.
//
// What a foreign file does not say is given in Options, else: 24 rows and 80 columns, a terminal xterm-256color, and an exit that
// is not known (neither exited nor signaled, with the reason in its Err). Times are those of the file; where a clock was turned
// back, the time stands still and a note says how often.
//
// asciicast holds text, cassettes hold bytes: a UTF-8 sequence that two chunks share goes out with the second one, and bytes that
// are no UTF-8 become U+FFFD and are counted. So cassette to asciicast to cassette gives the same bytes where those are UTF-8.
//
// Formats: docs.asciinema.org/manual/asciicast (v1, v2, v3), ttyrec(5), script(1) and scriptreplay(1) of util-linux.
//
// Not goals: playing, drawing (see cassette/picture), writing ttyrec or typescripts.
package foreign
