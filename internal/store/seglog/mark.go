package seglog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
)

// A mark says how far records were acknowledged, at least. It is written without a sync: the death of the process leaves it
// exact, the loss of power leaves an older one. On disk:
//
//	 0  8  magic F5 't' 'd' 'm' 'a' 'r', version 1 (2 bytes)
//	 8  8  position of the first record of the last segment
//	16  8  where its last acknowledged block ends
//	24  8  position behind the last acknowledged record
//	32  4  crc of bytes 0 to 32
type mark struct {
	segment Pos
	at      int64
	next    Pos
}

const (
	markName = "mark"
	markSize = 36
)

var markMagic = [8]byte{0xf5, 't', 'd', 'm', 'a', 'r', 1, 0}

func (m mark) encode(b *[markSize]byte) {
	copy(b[:], markMagic[:])
	le.PutUint64(b[8:], uint64(m.segment))
	le.PutUint64(b[16:], uint64(m.at))
	le.PutUint64(b[24:], uint64(m.next))
	le.PutUint32(b[32:], checksum(b[:32]))
}

func decodeMark(b []byte) (mark, error) {
	if len(b) != markSize || !bytes.Equal(b[:8], markMagic[:]) {
		return mark{}, fmt.Errorf("no mark: %d bytes, %d expected, or another begin", len(b), markSize)
	}
	if le.Uint32(b[32:]) != checksum(b[:32]) {
		return mark{}, errors.New("no mark: its crc is wrong")
	}
	return mark{Pos(le.Uint64(b[8:])), int64(le.Uint64(b[16:])), Pos(le.Uint64(b[24:]))}, nil
}

// A markFile keeps the mark of a log.
type markFile struct {
	f    faultfs.File
	buf  [markSize]byte
	lost bool // a write failed: an older mark stays, which is true too
}

func openMark(fs faultfs.FS, dir string) (markFile, error) {
	f, err := fs.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE, 0o600)
	return markFile{f: f}, err
}

// read returns the mark. An error of decoding is one that the log can do without a mark with: (mark{}, nil, why).
func (m *markFile) read() (got mark, unreadable, err error) {
	b, err := io.ReadAll(io.NewSectionReader(m.f, 0, markSize+1))
	if err != nil || len(b) == 0 {
		return mark{}, nil, err
	}
	got, unreadable = decodeMark(b)
	return got, unreadable, nil
}

// write keeps a mark. It returns an error once, then it has given up.
func (m *markFile) write(to mark) error {
	if m.lost {
		return nil
	}
	to.encode(&m.buf)
	_, err := m.f.WriteAt(m.buf[:], 0)
	m.lost = err != nil
	return err
}
