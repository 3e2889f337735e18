package picture

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"image"
	"io"
	"math/bits"
	"runtime"
	"time"
)

// A gifWriter writes a GIF89a, a picture at a time. Pictures are compressed side by side; the goroutine in run writes them in
// their order and ends with close or abandon. A picture's delay is known when the next one comes, so one is held back.
type gifWriter struct {
	width, height int
	last          time.Duration // when the picture that is held back is shown
	held          *gifFrame
	written       int64 // hundredths of a second, of all pictures so far: what is rounded is carried forward
	queue         chan *gifFrame
	done          chan error // one error or nil, when run has ended
	free          chan []uint8
}

// A gifFrame is one picture: pixels are indices, 0 is transparent.
type gifFrame struct {
	area   image.Rectangle
	colors []RGB
	pix    []uint8
	delay  int // hundredths of a second
	packed chan []byte
}

func newGIFWriter(w io.Writer, width, height int) *gifWriter {
	ahead := runtime.GOMAXPROCS(0) + 1
	g := &gifWriter{
		width: width, height: height,
		queue: make(chan *gifFrame, ahead), done: make(chan error, 1), free: make(chan []uint8, ahead+3),
	}
	go func() { g.done <- g.run(w) }()
	return g
}

// run writes what is queued. After an error it only takes, so that nobody waits for it.
func (g *gifWriter) run(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	_, err := out.Write(g.header())
	for f := range g.queue {
		packed := <-f.packed
		select {
		case g.free <- f.pix:
		default:
		}
		if err == nil {
			_, err = out.Write(packed)
		}
	}
	if err != nil {
		return err
	}
	out.WriteByte(0x3B)
	return out.Flush()
}

// header: no palette for all, and the extension that has it begin again for ever.
func (g *gifWriter) header() []byte {
	b := []byte("GIF89a")
	b = append(b, byte(g.width), byte(g.width>>8), byte(g.height), byte(g.height>>8), 0x70, 0, 0)
	b = append(b, 0x21, 0xFF, 11)
	b = append(b, "NETSCAPE2.0"...)
	return append(b, 3, 1, 0, 0, 0)
}

// buffer returns room for a picture, which frame takes.
func (g *gifWriter) buffer(n int) []uint8 {
	select {
	case b := <-g.free:
		if cap(b) >= n {
			return b[:n]
		}
	default:
	}
	return make([]uint8, n)
}

// frame adds a picture. It takes pix.
func (g *gifWriter) frame(at time.Duration, area image.Rectangle, colors []RGB, pix []uint8) error {
	g.release(at)
	g.last, g.held = at, &gifFrame{area: area, colors: colors, pix: pix, packed: make(chan []byte, 1)}
	return nil
}

// release hands over the picture that was held back, which stands until then.
func (g *gifWriter) release(until time.Duration) {
	f := g.held
	if f == nil {
		return
	}
	g.held = nil
	now := int64((until + 5*time.Millisecond) / (10 * time.Millisecond))
	f.delay = int(max(now-g.written, 0))
	g.written += int64(f.delay)
	const most = 0xFFFF // hundredths: eleven minutes
	f.delay = min(f.delay, most)
	go func() { f.packed <- f.pack() }()
	g.queue <- f // at most ahead of them are packed at once
}

func (g *gifWriter) close(until time.Duration) error {
	g.release(until)
	close(g.queue)
	return <-g.done
}

// abandon ends the writer; what was written is no whole file.
func (g *gifWriter) abandon() {
	close(g.queue)
	<-g.done
}

// pack writes a picture: its delay, its place, its colours, its pixels.
func (f *gifFrame) pack() []byte {
	size := max(bits.Len(uint(len(f.colors))), 1) // index 0 is one more
	b := []byte{0x21, 0xF9, 4, 1<<2 | 1, byte(f.delay), byte(f.delay >> 8), 0, 0, 0x2C}
	for _, v := range []int{f.area.Min.X, f.area.Min.Y, f.area.Dx(), f.area.Dy()} {
		b = append(b, byte(v), byte(v>>8))
	}
	b = append(b, 0x80|byte(size-1))
	table := make([]byte, 3<<size)
	for i, c := range f.colors {
		table[3*i+3], table[3*i+4], table[3*i+5] = byte(c>>16), byte(c>>8), byte(c)
	}
	b = append(b, table...)
	litWidth := max(size, 2)
	b = append(b, byte(litWidth))
	var codes bytes.Buffer
	w := lzw.NewWriter(&codes, lzw.LSB, litWidth)
	_, _ = w.Write(f.pix) // into memory: neither fails
	_ = w.Close()
	return appendBlocks(b, codes.Bytes())
}

// appendBlocks cuts data into blocks of up to 255 bytes, each after its length.
func appendBlocks(b, data []byte) []byte {
	for len(data) > 0 {
		n := min(len(data), 255)
		b = append(append(b, byte(n)), data[:n]...)
		data = data[n:]
	}
	return append(b, 0)
}
