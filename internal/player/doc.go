// Package player plays a cassette on a terminal: what the program wrote, at the time at which it did, with keys to pause, step,
// seek and change the speed.
//
// The terminal is given the recorded bytes as they are, but for what would ask it something or reach beyond its screen: questions
// (DA, DSR, DECRQM, colours …), whose answers would be typed into the shell, the clipboard (OSC 52), and media copy. To seek, the
// screen is cleared and everything before is written at once, so that it is what it was then.
//
// Not goals: scaling a screen to a smaller terminal, waiting for people, recording.
package player
