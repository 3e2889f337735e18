// Package tty finds secrets in what a terminal shows and in what is typed into it, says where they stand in the raw bytes,
// and masks them there. Package scrub tells what a secret is; docs/reference/secrets.md, "On a terminal", says all of it for people.
//
// A mask has as many bytes and columns as what it hides ('*' for ASCII) and joins its neighbours as that does. So offsets,
// lengths and the layout of every screen stay, and a recording can be masked in place. Control sequences are never touched.
//
// Two scans find secrets. The first (stripped) reads the text of the stream without sequences, line ends kept, up to where the
// cursor goes elsewhere, and each control string by itself. The second (model, screenRows) draws the screen and looks at the rows
// that changed before each control that may move the cursor or erase, with those that they go on in (seams); cells know which bytes
// drew them. While a program writes plain lines one below
// the other, the first scan has seen all that stands on the screen, and nothing is drawn until somebody asks or the cursor moves.
//
// A Live masks output while it is recorded: Write, then Take what need not be held any longer. What is found in bytes that were
// taken is a late hit (Late, CatchUp), to be masked where they were written to (MaskAt). An Input does it for keys. Scan looks at
// a whole recording, whose hits MaskAt masks.
//
// Guarantees: no byte is lost or added; the same secrets are found however the stream is cut into writes, while nothing has to
// leave before its time; memory is bounded by Options.Hold, one Write and constants; where Scan and MaskAt took turns,
// Scan finds nothing in the end.
//
// Not goals: placeholders that can be put back, comparing (masks.Masker), images.
package tty
