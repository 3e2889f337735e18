package canonjson

import "strconv"

// What a double holds of a number in decimal: any number of maxExact significant digits reads back as it was written, and
// every double is told from all others by maxShortest of them.
const (
	maxExact    = 15
	maxShortest = 17
)

// Holds reports whether f, the double nearest to a JSON number, stands for that number as it is written. Where it does not,
// RFC 8785 would write another one, so the canonical form is the number's own text:
//
//   - an integer (no point, no exponent) whose digits are not those that RFC 8785 writes for f, but for zeros at the end:
//     9007199254740993, of which a double makes 9007199254740992;
//   - any other number of more than 17 significant digits, which nothing writes that holds a double.
//
// A number too small for a double is 0, as the RFC has it.
func Holds(f float64, number string) bool {
	if len(number) <= maxExact || f == 0 {
		return true
	}
	digits, integer := significant(number)
	if digits <= maxExact || !integer {
		return digits <= maxShortest
	}
	var buf [32]byte
	return string(strconv.AppendFloat(buf[:0], f, 'f', -1, 64)) == number
}

// significant counts the digits of a JSON number without the zeros before and behind, and says whether it is written as an
// integer.
func significant(number string) (digits int, integer bool) {
	integer = true
	zeros := 0
	for i := range len(number) {
		switch c := number[i]; {
		case c == 'e' || c == 'E':
			return digits, false
		case c == '.':
			integer = false
		case c == '0' && digits > 0:
			zeros++
		case c >= '1' && c <= '9':
			digits += zeros + 1
			zeros = 0
		}
	}
	return digits, integer
}
