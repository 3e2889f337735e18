// Package picture shows a cassette to people: an animated GIF, an SVG that stands still or moves, plain text, and one HTML
// page with a player.
//
// All of them are made from one stream of pictures: the output goes through the screen model, and what the screen
// showed is taken at most Options.FPS times a second. Nothing is taken between two writes that change nothing, nor while a
// program holds the screen back (mode 2026). A picture's Time is that of the film: long pauses are cut to Options.MaxIdle, and
// Options.Speed is applied. Its Recorded is the time in the session.
//
// Everything is written as it comes: memory is bounded by the screen's size and, for SVG and HTML, by the number of different
// lines. The same cassette and options give the same bytes.
//
// What programs wrote is data: control characters, marks that turn the direction of text, and markup never get into SVG or
// HTML other than as text. The page loads nothing and may load nothing (its Content-Security-Policy says so).
//
// Sources: GIF89a; SVG 1.1 with SMIL; fonts are those of package cellfont.
package picture
