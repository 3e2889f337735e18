package packed

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// frames reads what frames hold, one behind the other, and makes the table that must follow them.
type frames struct {
	z     *zstd.Decoder
	r     io.ReaderAt
	size  int64
	min   int64               // minFrame, but for tests
	begin func() (node, bool) // what the next frame begins with, where one may begin

	at    int64 // behind the frame that is being read
	nodes []node
	body  io.Reader // of that frame; nil where none is being read
	hash  *cas.Hasher
	head  []byte // of what it holds, still to be given
	fresh bool   // a header comes next
	last  byte   // that was given
}

// Read implements io.Reader. At the end of a frame in a place where none may end it returns io.EOF, or ErrDamaged where something follows.
func (f *frames) Read(b []byte) (int, error) {
	for {
		if f.body == nil {
			if err := f.next(); err != nil {
				return 0, err
			}
		}
		if n := copy(b, f.head); n > 0 {
			f.head = f.head[n:]
			return f.given(b[:n]), nil
		}
		n, err := f.z.Read(b)
		f.nodes[len(f.nodes)-1].Raw += int64(n)
		if errors.Is(err, io.EOF) {
			err = f.close()
		}
		if n > 0 || err != nil || len(b) == 0 {
			return f.given(b[:n]), err
		}
	}
}

func (f *frames) given(b []byte) int {
	if len(b) > 0 {
		f.fresh, f.last = false, b[len(b)-1]
	}
	return len(b)
}

// next begins the next frame.
func (f *frames) next() error {
	n, may := f.begin()
	if f.at == f.size {
		return io.EOF
	}
	end, err := endOfFrame(f.r, f.at, f.size)
	switch {
	case errors.Is(err, errSkippable):
		return io.EOF
	case err == nil && (!may || int64(len(f.nodes)) > fewFrames+f.at/f.min):
		err = fmt.Errorf("%w: no frame may begin at byte %d", ErrDamaged, f.at)
	}
	if err != nil {
		return err
	}
	n.At, n.Size = f.at, end-f.at
	f.hash = cas.NewHasher()
	f.body = io.TeeReader(io.NewSectionReader(f.r, f.at, n.Size), f.hash)
	f.at = end
	f.nodes = append(f.nodes, n)
	if err := f.z.Reset(f.body); err != nil || n.Name != tapeEntry {
		return err
	}
	f.head = make([]byte, maxSeqHead)
	got, err := io.ReadFull(f.z, f.head)
	f.head = f.head[:got]
	last := &f.nodes[len(f.nodes)-1]
	last.Raw = int64(got)
	last.Seq, may = seqOf(f.head)
	if err == nil && (!may || f.last != '\n') {
		err = fmt.Errorf("%w: the frame at byte %d begins with no record", ErrDamaged, n.At)
	}
	if before := f.nodes[len(f.nodes)-2]; err == nil && last.Seq <= before.Seq { // the first frame has the index: there is one before
		err = fmt.Errorf("%w: record %d begins a frame behind that of record %d", ErrDamaged, last.Seq, before.Seq)
	}
	return err
}

// named says which entry has begun.
func (f *frames) named(name string, size int64) error {
	n := &f.nodes[len(f.nodes)-1]
	if n.Name == "" && len(f.nodes) > 1 {
		n.Name, n.Of = name, size
	}
	if n.inTape() {
		return fmt.Errorf("%w: %q stands in a frame of the tape", ErrDamaged, name)
	}
	return nil
}

func (f *frames) close() error {
	_, err := io.Copy(io.Discard, f.body) // which the decoder has read, but perhaps to its end
	n := &f.nodes[len(f.nodes)-1]
	n.Digest, f.body = f.hash.Sum(), nil
	if err == nil && n.Raw == 0 {
		err = fmt.Errorf("%w: the frame at byte %d is empty", ErrDamaged, n.At)
	}
	return err
}

// end returns io.EOF where the table is the one that a Writer makes for these frames.
func (f *frames) end() error {
	if n := &f.nodes[len(f.nodes)-1]; n.Name == "" && len(f.nodes) > 1 {
		return fmt.Errorf("%w: the frame at byte %d has nothing but the end", ErrDamaged, n.At)
	}
	at := f.at
	_, err := table(f.nodes, f.at, func(want []byte) error {
		if int64(len(want)) > f.size-at {
			return fmt.Errorf("%w: its table is cut short", ErrDamaged)
		}
		have := make([]byte, len(want))
		if _, err := f.r.ReadAt(have, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !bytes.Equal(have, want) {
			return fmt.Errorf("%w: its table is another one", ErrDamaged)
		}
		at += int64(len(want))
		return nil
	})
	if err != nil {
		return err
	}
	if at != f.size {
		return fmt.Errorf("%w: %d bytes follow its end", ErrDamaged, f.size-at)
	}
	return io.EOF
}
