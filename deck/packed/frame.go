package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// The types of a zstd block (RFC 8878, 3.1.1.2).
const (
	blockRaw, blockRLE, blockCompressed = 0, 1, 2
)

// Magic is what every packed recording begins with, as every zstd frame does.
const Magic = "\x28\xb5\x2f\xfd"

// unusedBit is the bit of a frame's header that a decoder ignores (RFC 8878, 3.1.1.1.1.3).
const unusedBit = 1 << 4

// checkFrame walks the blocks of the size bytes of r, without decoding them, and refuses what is not exactly one frame: a
// decoder skips over frames that hold nothing and reads on behind the end of one, so that more could hide there.
func checkFrame(r io.ReaderAt, size int64) error {
	head := make([]byte, zstd.HeaderMaxSize)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if head = head[:n]; n < len(Magic) || string(head[:len(Magic)]) != Magic {
		return ErrNotPacked
	}
	var h zstd.Header
	if err := h.Decode(head); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if head[len(Magic)]&unusedBit != 0 || h.DictionaryID != 0 || h.WindowSize > window || !h.HasCheckSum {
		return fmt.Errorf("%w: it is compressed otherwise than pack does", ErrNotPacked)
	}
	at, err := endOfBlocks(r, int64(h.HeaderSize))
	if err != nil {
		return err
	}
	const checksum = 4
	if end := at + checksum; end > size {
		return fmt.Errorf("%w: it is cut short at byte %d of %d", ErrDamaged, size, end)
	} else if end < size {
		return fmt.Errorf("%w: %d bytes follow its end", ErrDamaged, size-end)
	}
	return nil
}

// endOfBlocks returns where the blocks that begin at at end.
func endOfBlocks(r io.ReaderAt, at int64) (int64, error) {
	var b [4]byte
	for {
		if n, err := r.ReadAt(b[:3], at); n < 3 {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: it is cut short: nothing is at byte %d, where a block is due", ErrDamaged, at)
			}
			return 0, err
		}
		head := binary.LittleEndian.Uint32(b[:])
		length := int64(head >> 3)
		switch head >> 1 & 3 {
		case blockRaw, blockCompressed:
		case blockRLE:
			length = 1
		default:
			return 0, fmt.Errorf("%w: no block is at byte %d, where one is due", ErrDamaged, at)
		}
		at += 3 + length
		if head&1 != 0 {
			return at, nil
		}
	}
}
