// Package verify reads every line and every blob of a recording, a packed one or a bare tape, holds what stands in it twice against
// each other, and its seal against all of it.
//
// Goals: what does not hold is named with its path and line; nothing is changed. Not goals: a proof that nobody changed an unsealed
// recording.
package verify
