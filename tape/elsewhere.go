package tape

import "strconv"

// ElsewhereKey is a further key of a ws_message that a replay said to its program: the seq of the recorded one, where that stands on
// another of several sockets that were opened alike, and the program had said the same on both by then.
const ElsewhereKey = "recorded_seq"

// ElsewhereOf returns the seq of the recorded message that one of a replay is, where it stands on another socket; false for none.
func ElsewhereOf(k *WSMessage) (seq uint64, ok bool) {
	seq, err := strconv.ParseUint(string(FieldValue(k.Extra, ElsewhereKey)), 10, 64)
	return seq, err == nil
}
