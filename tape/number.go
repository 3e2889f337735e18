package tape

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
)

const ones = 0x0101010101010101

// numberRoom is the most bytes that appendNumber touches.
const numberRoom = 24

// appendNumber appends n in decimal. Every record has four numbers and every chunk of an answer three, so that they are
// written eight digits at a time, and the small ones, which most are, looked up.
func appendNumber[T int | int64 | uint64](dst []byte, n T) []byte {
	const half, whole = 1e8, 1e16
	if n < 0 || uint64(n) >= whole {
		if n < 0 {
			return strconv.AppendInt(dst, int64(n), 10)
		}
		return strconv.AppendUint(dst, uint64(n), 10)
	}
	dst = slices.Grow(dst, numberRoom)
	at := len(dst)
	out := dst[at : at+numberRoom]
	if n < 100 {
		pair := tens[n]
		out[0], out[1] = pair[0], pair[1]
		return dst[:at+int(pair[2])]
	}
	front, back := uint64(n), uint64(0)
	if long := front >= half; long {
		front, back = front/half, front%half
	}
	digits := eightDigits(front)
	zeros := bits.TrailingZeros64(digits) &^ 7 // leading ones: the first digit is the lowest byte
	binary.LittleEndian.PutUint64(out, (digits|ones*'0')>>(zeros&63))
	end := 8 - zeros/8
	if uint64(n) >= half {
		binary.LittleEndian.PutUint64(out[end:], eightDigits(back)|ones*'0')
		end += 8
	}
	return dst[:at+end]
}

// eightDigits returns the decimal digits of n, which is below 1e8, one a byte and the first one lowest. Each line halves
// the groups that the one before made: two of four digits, four of two, eight of one; n*10486>>20 is n/100 for n below
// 10000, and n*103>>10 is n/10 for n below 100.
func eightDigits(n uint64) uint64 {
	n = n/10000 | n%10000<<32
	hundreds := n * 10486 >> 20 & 0x0000007f_0000007f
	n = hundreds | (n-100*hundreds)<<16
	tens := n * 103 >> 10 & 0x000f000f_000f000f
	return tens | (n-10*tens)<<8
}

// tens holds the digits of the numbers below 100, and behind them how many.
var tens = func() (t [100][4]byte) {
	for n := range t {
		t[n] = [4]byte{'0' + byte(n), 0, 1}
		if n >= 10 {
			t[n] = [4]byte{'0' + byte(n/10), '0' + byte(n%10), 2}
		}
	}
	return t
}()
