package daemon

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// newUUID makes a UUID of version 7 (RFC 9562): those that are made later sort behind, to the millisecond.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // which does not fail
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli()))
	copy(b[:6], ms[2:])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[:8], b[:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:], b[10:])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}
