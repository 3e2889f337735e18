// Package follow reads a recording for people: records chosen by a Filter, told while they are made, in one timeline with what the
// terminal showed.
//
// Goals: a record is told within milliseconds; a tape of any length needs the memory of one record. Not goals: how a record looks.
package follow
