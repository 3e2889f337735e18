// Package masks takes volatile facts out of what is compared. A Masker replaces UUIDs, times, temporary names, HOME and the like by the
// names of their masks, each a shape in a place, and counts them, so that a match never hides one. What it returns it does not change
// again. docs/masking.md says all of it for people.
//
// Two texts that are equal but for masks may speak of different things: Facts and Trace say what was taken out, and MomentOf
// and Milliseconds what it says.
//
// Cost. A text is looked at once, and a filter of three bytes lets most places pass by.
package masks
