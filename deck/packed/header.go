package packed

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// block is the unit of tar, in bytes.
const block = 512

// maxOctal is the largest size that eleven octal digits hold.
const maxOctal = 1<<33 - 1

// The fields of a header: where they begin.
const (
	atMode, atUID, atGID, atSize, atTime, atSum, atType, atMagic, atDevice = 100, 108, 116, 124, 136, 148, 156, 257, 329
)

// header returns the one header that an entry of this name and size has.
func header(name string, size int64) (h [block]byte) {
	copy(h[:maxName], name)
	copy(h[atMode:], "0000644\x00")
	copy(h[atUID:], "0000000\x00")
	copy(h[atGID:], "0000000\x00")
	putSize(h[atSize:atTime], size)
	copy(h[atTime:], "00000000000\x00")
	copy(h[atSum:], "        ")
	h[atType] = '0'
	copy(h[atMagic:], "ustar\x0000")
	copy(h[atDevice:], "0000000\x000000000\x00")
	var sum int
	for _, b := range h {
		sum += int(b)
	}
	copy(h[atSum:], fmt.Sprintf("%06o\x00 ", sum))
	return h
}

// putSize writes a size as tar does: in octal, or with the first bit set in binary.
func putSize(field []byte, size int64) {
	if size <= maxOctal {
		copy(field, fmt.Sprintf("%011o\x00", size))
		return
	}
	field[0] = 0x80
	binary.BigEndian.PutUint64(field[4:], uint64(size))
}

// parseHeader returns the name and the size in h, where h is the header of such an entry to the last byte.
func parseHeader(h *[block]byte) (name string, size int64, err error) {
	name = string(h[:maxName])
	if i := bytes.IndexByte(h[:maxName], 0); i >= 0 {
		name = name[:i]
	}
	size = parseSize(h[atSize:atTime])
	if size < 0 || *h != header(name, size) {
		return "", 0, fmt.Errorf("%w: the header of %.120q is not one that pack writes", ErrDamaged, name)
	}
	return name, size, nil
}

// parseSize reads what putSize wrote; anything else gives a number that putSize writes otherwise, or a negative one.
func parseSize(field []byte) int64 {
	if field[0]&0x80 != 0 {
		return int64(binary.BigEndian.Uint64(field[4:]))
	}
	var n int64
	for _, c := range field[:11] {
		n = n<<3 | int64(c&7)
	}
	return n
}

// padding is how many zero bytes follow a content of size bytes.
func padding(size int64) int64 { return -size & (block - 1) }
