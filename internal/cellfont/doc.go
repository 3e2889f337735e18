// Package cellfont draws the characters of a terminal into cells.
//
// A cell is 8 by 16 units. Three sources, in this order:
//
//   - Lines, blocks, shades, braille, sextants and the triangles of prompts are drawn by program (Shapes), so that they join
//     from cell to cell at any scale.
//   - Letters of Latin, Greek, Cyrillic and the common signs come from JetBrains Mono, drawn beforehand at 16 by 32 pixels in
//     sixteen levels.
//   - All else comes from GNU Unifont: one bit a pixel, 8 or 16 by 16; Chinese, Japanese and Korean are there, and emoji,
//     in one colour.
//
// A cluster of several characters is one picture: a letter with its marks, composed where Unicode has the whole; of an emoji
// that is joined from several the first. What no font has is a box. Both fonts are under the SIL Open Font License: see
// THIRD_PARTY. They are unpacked when they are first needed, 2 MB.
//
// Not goals: shaping of Arabic or Indic scripts, colour fonts, sizes other than 8 by 16 times a whole number.
package cellfont
