package tape

import "strconv"

// EndedKey is a further key of the process_spawn of a recording's program: when it had ended, by monotonic_ms. The record itself stands
// behind what was found out only then.
const EndedKey = "ended_ms"

// EndedField is that key, with ms; none for less than 1.
func EndedField(ms int64) []Field {
	if ms < 1 {
		return nil
	}
	return []Field{{Name: EndedKey, Value: strconv.AppendInt(nil, ms, 10)}}
}

// EndedMS returns when the program had ended whose process_spawn k is; 0 where that is not known.
func EndedMS(k Kind) int64 {
	p, ok := k.(*ProcessSpawn)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(FieldValue(p.Extra, EndedKey)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
