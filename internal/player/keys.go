package player

// A Key is something that who watches asks for.
type Key uint8

// The keys.
const (
	Pause Key = iota + 1
	Step
	Quit
	Faster
	Slower
	Forward
	Back
	ToStart
	NextMark
	LastMark
)

var sequences = map[string]Key{
	" ": Pause, ".": Step, "q": Quit, "\x03": Quit, "\x04": Quit, "+": Faster, "=": Faster, "-": Slower, "_": Slower,
	"\x1b[C": Forward, "\x1bOC": Forward, "\x1b[D": Back, "\x1bOD": Back, "\x1b[H": ToStart, "\x1bOH": ToStart, "\x1b[1~": ToStart,
	"]": NextMark, "[": LastMark,
}

// Keys returns the keys in what was typed. A terminal sends a key in one piece, so what is none is passed by: answers of the
// terminal too, which begin with ESC.
func Keys(b []byte) []Key {
	var out []Key
	for len(b) > 0 {
		n := keyLen(b)
		if k := sequences[string(b[:n])]; k != 0 {
			out = append(out, k)
		}
		b = b[n:]
	}
	return out
}

// keyLen is how many bytes the first key of b has.
func keyLen(b []byte) int {
	if b[0] != 0x1b || len(b) == 1 {
		return 1
	}
	switch b[1] {
	case 'O':
		return min(3, len(b))
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return len(b)
	case ']', 'P', '_', '^', 'X': // a string: an answer, up to its end
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 || b[i] == '\\' && b[i-1] == 0x1b {
				return i + 1
			}
		}
		return len(b)
	}
	return 2
}
