package picture

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"fmt"
	"image"
	"io"
	"math/bits"
	"runtime"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cellfont"
)

// tail is how long at least the last picture of a GIF or an SVG stands before the first comes again.
const tail = 1500 * time.Millisecond

// maxSide is the most pixels that a GIF has each way.
const maxSide = 1<<16 - 1

// A gifMaker draws pictures and writes them.
type gifMaker struct {
	settings
	w          *gifWriter
	glyphs     glyphs
	rows, cols int // of the largest screen
	frame      frame
	now, shown []look // of the picture, of the one before
	paint      *paint
	colors     *Colors
	any        bool
}

// A frame is what stands around the screen, in pixels.
type frame struct{ left, top, right, bottom int }

func frameOf(window bool, scale int) frame {
	f := frame{6 * scale, 6 * scale, 6 * scale, 6 * scale}
	if window {
		f.top = 26 * scale
	}
	return f
}

func writeGIF(w io.Writer, s *session, o *Options) error {
	set := o.settings()
	f := newFilm(s, set)
	g := &gifMaker{settings: set, rows: s.largest.rows, cols: s.largest.cols, glyphs: glyphs{scale: set.Scale}, frame: frameOf(set.Window, set.Scale)}
	width := g.frame.left + g.cols*cellfont.Width*g.Scale + g.frame.right
	height := g.frame.top + g.rows*cellfont.Height*g.Scale + g.frame.bottom
	if width > maxSide || height > maxSide {
		return fmt.Errorf("the picture would have %d by %d pixels, and a GIF has at most %d each way: take a smaller scale", width, height, maxSide)
	}
	g.w = newGIFWriter(w, width, height)
	g.now, g.shown = make([]look, g.rows*g.cols), make([]look, g.rows*g.cols)
	for p, err := range f.pictures() {
		if err != nil {
			g.w.abandon()
			return err
		}
		if err := g.picture(p, s); err != nil {
			return err
		}
	}
	return g.w.close(max(f.end(), g.w.last+tail))
}

// picture draws what is different now. The first one is drawn whole, and what stands around it.
func (g *gifMaker) picture(p *Picture, s *session) error {
	if g.paint == nil || g.colors != p.Colors {
		g.paint, g.colors = g.Theme.paint(p.Colors), p.Colors
	}
	g.now, g.shown = g.shown, g.now
	looks(g.now, p, g.paint, g.cols)
	cells := g.changed()
	if !g.any {
		cells = image.Rect(0, 0, g.cols, g.rows)
	}
	if cells.Empty() {
		return nil // the title, or what is hidden
	}
	pal := g.palette(cells)
	area := g.area(cells)
	if !g.any {
		area = image.Rect(0, 0, g.w.width, g.w.height)
	}
	pix := g.w.buffer(area.Dx() * area.Dy())
	t := &target{pix: pix, stride: area.Dx(), origin: area.Min, pal: pal}
	if !g.any {
		g.surround(t, s, p.Title)
	} else {
		clear(pix)
	}
	g.cells(t, cells)
	g.any = true
	return g.w.frame(p.Time, area, pal.colors, pix)
}

// changed returns the cells that are drawn anew, as the smallest rectangle.
func (g *gifMaker) changed() image.Rectangle {
	var r image.Rectangle
	for y := range g.rows {
		now, shown := g.now[y*g.cols:(y+1)*g.cols], g.shown[y*g.cols:(y+1)*g.cols]
		first, last := -1, -1
		for x := range now {
			if now[x] != shown[x] {
				if first < 0 {
					first = x
				}
				last = x
			}
		}
		if first < 0 {
			continue
		}
		if now[first].width == 0 && first > 0 {
			first--
		}
		if now[last].width == 2 && last+1 < g.cols {
			last++
		}
		r = r.Union(image.Rect(first, y, last+1, y+1))
	}
	return r
}

// redraw says whether a cell's picture is another; the second half of a wide one belongs to the first.
func (g *gifMaker) redraw(i, x int) bool {
	if !g.any || g.now[i] != g.shown[i] {
		return true
	}
	return g.now[i].width == 2 && x+1 < g.cols && g.now[i+1] != g.shown[i+1]
}

// area is where cells stand, in pixels.
func (g *gifMaker) area(cells image.Rectangle) image.Rectangle {
	w, h := cellfont.Width*g.Scale, cellfont.Height*g.Scale
	return image.Rect(cells.Min.X*w, cells.Min.Y*h, cells.Max.X*w, cells.Max.Y*h).Add(image.Pt(g.frame.left, g.frame.top))
}

func (g *gifMaker) palette(cells image.Rectangle) *palette {
	pairs, solid := map[pair]bool{}, map[RGB]bool{}
	if !g.any {
		g.surroundColors(pairs, solid)
	}
	for y := cells.Min.Y; y < cells.Max.Y; y++ {
		for x := cells.Min.X; x < cells.Max.X; x++ {
			i := y*g.cols + x
			if !g.redraw(i, x) {
				continue
			}
			l := &g.now[i]
			solid[l.bg] = true
			if l.text != "" {
				pairs[pair{l.fg, l.bg}] = true
			}
			if l.underline != 0 {
				solid[l.under] = true
			}
			if l.cursor != noCursor || l.attr != 0 {
				solid[l.fg] = true
			}
		}
	}
	return newPalette(pairs, solid)
}

func (g *gifMaker) cells(t *target, cells image.Rectangle) {
	for y := cells.Min.Y; y < cells.Max.Y; y++ {
		for x := cells.Min.X; x < cells.Max.X; x++ {
			i := y*g.cols + x
			if g.redraw(i, x) && g.now[i].width > 0 {
				at := g.area(image.Rect(x, y, x+1, y+1)).Min
				g.cell(t, &g.now[i], at, min(int(g.now[i].width), g.cols-x))
			}
			if g.redraw(i, x) && g.now[i].width == 0 && (x == 0 || g.now[i-1].width != 2) {
				at := g.area(image.Rect(x, y, x+1, y+1)).Min // filler that lost its character
				t.fill(at.X, at.Y, cellfont.Width*g.Scale, cellfont.Height*g.Scale, t.pal.of(g.now[i].bg))
			}
		}
	}
}

func (g *gifMaker) cell(t *target, l *look, at image.Point, columns int) {
	w, h := columns*cellfont.Width*g.Scale, cellfont.Height*g.Scale
	if l.text == "" || columns < int(l.width) {
		t.fill(at.X, at.Y, w, h, t.pal.of(l.bg))
	} else {
		t.mask(at.X, at.Y, g.glyphs.mask(l), t.pal.ramp(pair{l.fg, l.bg}))
	}
	if l.underline == 0 && l.attr == 0 && l.cursor == noCursor {
		return
	}
	units := float64(columns * cellfont.Width)
	all, under := l.strokes(units)
	for i, s := range all {
		c := l.fg
		if i < under {
			c = l.under
		}
		t.stroke(at, s, g.Scale, t.pal.of(c))
	}
	if s, ok := l.cursorStroke(units); ok {
		t.stroke(at, s, g.Scale, t.pal.of(l.fg))
	}
}

// A target is the pixels of one picture of the GIF, which is a part of the canvas.
type target struct {
	pix    []uint8
	stride int
	origin image.Point
	pal    *palette
}

func (t *target) fill(x, y, w, h int, c uint8) {
	x, y = x-t.origin.X, y-t.origin.Y
	for range h {
		row := t.pix[y*t.stride+x:][:w]
		for i := range row {
			row[i] = c
		}
		y++
	}
}

func (t *target) stroke(at image.Point, s stroke, scale int, c uint8) {
	x0, y0 := int(s.x0*float64(scale)), int(s.y0*float64(scale))
	x1, y1 := max(int(s.x1*float64(scale)), x0+1), max(int(s.y1*float64(scale)), y0+1)
	t.fill(at.X+x0, at.Y+y0, x1-x0, y1-y0, c)
}

func (t *target) mask(x, y int, m *cellfont.Mask, r *ramp) {
	x, y = x-t.origin.X, y-t.origin.Y
	for i := range m.H {
		row := t.pix[(y+i)*t.stride+x:][:m.W]
		for j, v := range m.Pix[i*m.W : (i+1)*m.W] {
			row[j] = r[v&(cellfont.Levels-1)]
		}
	}
}

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
