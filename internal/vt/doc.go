// Package vt is the screen of a terminal: it takes the bytes that a program wrote and holds what stands on the screen.
//
// It is a model of xterm, as far as programs of today use it: UTF-8, ECMA-48 and DEC controls, SGR with 24-bit colours and
// the styles of underlines, the alternate screen, margins (DECSTBM, DECLRMM), tab stops, character sets, wide characters and
// grapheme clusters (UAX 29), OSC titles, hyperlinks and palette, synchronised output, mouse and paste modes.
// Queries are answered through Options.Reply, as xterm would.
//
// Determinism: the screen depends on the bytes and the sizes alone, however the bytes are cut into writes. What a terminal
// shows depends on the version of Unicode whose widths it knows and on whether it draws clusters, so a recording names both:
// see Pin. Version is raised with every change after which equal bytes may give another screen.
//
// Limits: every parameter is capped to what the screen can hold, a control string to MaxString bytes, a cluster to MaxCluster
// bytes; memory is bounded by the size, the scrollback and the hyperlinks on them. Nothing panics, nothing waits.
//
// Positions are counted from 0. A wide character stands in its first cell; the second is filler.
//
// Not goals: drawing, keys, timing, images (sixel and kitty graphics are read past).
package vt
