package vt

// A state of the machine, after the state diagram of the VT500's parser (vt100.net/emu/dec_ansi_parser).
type state uint8

const (
	ground state = iota
	escape
	escapeInter
	csiEntry
	csiParam
	csiInter
	csiIgnore
	dcsEntry
	dcsParam
	dcsInter
	// What follows is read up to the end of the string.
	dcsData
	dcsIgnore
	stringData
	states
)

// An action on a byte.
type action uint8

const (
	doNothing action = iota
	doControl
	doOpen
	doCollect
	doPrefix
	doParam
	doEscape
	doCSI
	doDCS
	doSkipDCS
	doString
)

// A transition is what the machine does on a byte in a state, and the state after it.
type transition struct {
	next state
	do   action
}

// table holds the transitions of every state on every byte below 0x80. The states inside a control string need none.
var table = transitions()

func transitions() (t [dcsData][128]transition) {
	in := func(from state, lo, hi byte, do action, next state) {
		for c := int(lo); c <= int(hi); c++ {
			t[from][c] = transition{next, do}
		}
	}
	for s := ground; s < dcsData; s++ {
		in(s, 0, 0x7f, doNothing, s)
		if s < dcsEntry {
			in(s, 0, 0x1f, doControl, s)
		}
		in(s, 0x18, 0x18, doControl, ground)
		in(s, 0x1a, 0x1a, doControl, ground)
		in(s, 0x1b, 0x1b, doOpen, escape)
	}
	in(ground, 0x7f, 0x7f, doControl, ground)

	for _, s := range []state{escape, escapeInter} {
		in(s, 0x20, 0x2f, doCollect, escapeInter)
		in(s, 0x30, 0x7e, doEscape, ground)
	}
	in(escape, '[', '[', doNothing, csiEntry)
	in(escape, 'P', 'P', doNothing, dcsEntry)
	for _, c := range []byte("]X^_") {
		in(escape, c, c, doString, stringData)
	}

	for _, s := range []state{csiEntry, csiParam, csiInter, csiIgnore} {
		in(s, 0x40, 0x7e, doCSI, ground)
		in(s, 0x20, 0x2f, doCollect, csiInter)
	}
	in(csiEntry, 0x30, 0x3b, doParam, csiParam)
	in(csiEntry, 0x3c, 0x3f, doPrefix, csiParam)
	in(csiParam, 0x30, 0x3b, doParam, csiParam)
	in(csiParam, 0x3c, 0x3f, doNothing, csiIgnore)
	in(csiInter, 0x30, 0x3f, doNothing, csiIgnore)
	in(csiIgnore, 0x20, 0x3f, doNothing, csiIgnore)
	in(csiIgnore, 0x40, 0x7e, doNothing, ground)

	for _, s := range []state{dcsEntry, dcsParam, dcsInter} {
		in(s, 0x40, 0x7e, doDCS, dcsData)
		in(s, 0x20, 0x2f, doCollect, dcsInter)
	}
	in(dcsEntry, 0x30, 0x3b, doParam, dcsParam)
	in(dcsEntry, 0x3c, 0x3f, doPrefix, dcsParam)
	in(dcsParam, 0x30, 0x3b, doParam, dcsParam)
	in(dcsParam, 0x3c, 0x3f, doSkipDCS, dcsIgnore)
	in(dcsInter, 0x30, 0x3f, doSkipDCS, dcsIgnore)
	return t
}
