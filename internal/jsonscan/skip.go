package jsonscan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

var tooDeep = fmt.Sprintf("nested more than %d deep", MaxDepth)

// skip returns where the value that comes next in b from i on ends. What is wrong with it is why, and end the place. It keeps
// the closing byte of every object and list that is open in a list of its own, so that no nesting can exhaust the stack.
func skip(b []byte, i int) (end int, why string) {
	var room [64]byte
	open := room[:0]
	for {
		i = skipSpace(b, i)
		if i >= len(b) {
			return i, "not a JSON value"
		}
		switch c := b[i]; c {
		case '"':
			i, why = skipText(b, i)
		case '{', '[':
			i++
			if i = skipSpace(b, i); i < len(b) && b[i] == c+2 { // '{' and '}', '[' and ']' are two apart
				i++
				break
			}
			if len(open) == MaxDepth {
				return i, tooDeep
			}
			open = append(open, c+2)
			if c == '{' {
				if i, why = skipKey(b, i); why != "" {
					return i, why
				}
			}
			continue
		default:
			i, why = skipPlain(b, i)
		}
		if why != "" {
			return i, why
		}
		if i, open, why = closeAll(b, i, open); len(open) == 0 || why != "" {
			return i, why
		}
	}
}

// closeAll steps, behind a value, out of the objects and lists that end there, and to the next value of the one that goes on.
func closeAll(b []byte, i int, open []byte) (int, []byte, string) {
	for len(open) > 0 {
		last := open[len(open)-1]
		if i = skipSpace(b, i); i >= len(b) {
			return i, open, "object or list does not go on"
		}
		if b[i] == last {
			i++
			open = open[:len(open)-1]
			continue
		}
		if b[i] != ',' {
			return i, open, "object or list does not go on"
		}
		if i++; last == '}' {
			var why string
			i, why = skipKey(b, i)
			return i, open, why
		}
		break
	}
	return i, open, ""
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipKey steps over a key and its colon.
func skipKey(b []byte, i int) (int, string) {
	if i = skipSpace(b, i); i >= len(b) || b[i] != '"' {
		return i, "want a string"
	}
	i, why := skipText(b, i)
	if why != "" {
		return i, why
	}
	if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
		return i, "want ':'"
	}
	return i + 1, ""
}

// skipText steps over the string that begins at i. What is plain goes by in words; from the first escape on, in blocks, for where
// one stands others follow, as in source text, and to stop at each costs more than to look at everything.
func skipText(b []byte, i int) (int, string) {
	for i++; i+8 <= len(b); i += 8 {
		hit := special(binary.LittleEndian.Uint64(b[i:]))
		if hit == 0 {
			continue
		}
		i += bits.TrailingZeros64(hit) / 8
		switch {
		case b[i] == '"':
			return i + 1, ""
		case b[i] == '\\' && i+blockSize <= len(b):
			return skipBlocks(b, i)
		}
		break
	}
	return skipSlowly(b, i)
}

// skipSlowly steps over what is left of a string, byte by byte where it is not plain, and says what is wrong with it.
func skipSlowly(b []byte, i int) (int, string) {
	for {
		i += plainLen(b[i:])
		switch {
		case i >= len(b):
			return i, "string does not end"
		case b[i] == '"':
			return i + 1, ""
		case b[i] < 0x20:
			return i, "control character in a string"
		}
		n := escapeLen(b[i:])
		if n == 0 {
			return i, "bad escape"
		}
		i += n
	}
}

// escapeLen is how long the escape at the beginning of b is; 0 where there is none.
func escapeLen(b []byte) int {
	if short(b) != 0 {
		return 2
	}
	var room [utf8.UTFMax]byte
	n, _ := unescape(room[:], b)
	return n
}

// skipPlain steps over a number, true, false or null.
func skipPlain(b []byte, i int) (int, string) {
	switch c := b[i]; {
	case c == '-' || c-'0' <= 9:
		return skipNumber(b, i)
	case c == 't' && len(b)-i >= 4 && string(b[i:i+4]) == "true":
		return i + 4, ""
	case c == 'f' && len(b)-i >= 5 && string(b[i:i+5]) == "false":
		return i + 5, ""
	case c == 'n' && len(b)-i >= 4 && string(b[i:i+4]) == "null":
		return i + 4, ""
	}
	return i, "not a JSON value"
}

func skipNumber(b []byte, i int) (int, string) {
	var ok bool
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i, ok = digits(b, i); !ok {
		return i, "want a digit"
	}
	if i < len(b) && b[i] == '.' {
		if i, ok = digits(b, i+1); !ok {
			return i, "want a digit"
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i, ok = digits(b, i); !ok {
			return i, "want a digit"
		}
	}
	return i, ""
}

// digits steps over at least one digit.
func digits(b []byte, i int) (int, bool) {
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i, i > from
}
