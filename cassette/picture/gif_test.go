package picture

import (
	"bytes"
	"image"
	"image/draw"
	"image/gif"
	"testing"
	"time"
)

// replayed decodes a GIF and calls each with what it shows after every picture.
func replayed(t *testing.T, b []byte, each func(i, delay int, shown *image.RGBA)) *gif.GIF {
	t.Helper()
	g, err := gif.DecodeAll(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	canvas := image.NewRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
	for i, m := range g.Image {
		draw.Draw(canvas, m.Bounds(), m, m.Bounds().Min, draw.Over)
		each(i, g.Delay[i], canvas)
	}
	return g
}

// What a GIF shows after many small changes is what it shows when the same screen is drawn at once.
func TestGIFShowsAfterChangesWhatTheScreenIs(t *testing.T) {
	for _, name := range []string{"vim", "htop", "mc", "unicode", "ink"} {
		s := sample(t, name, 700, 100*time.Millisecond)
		var moving, still bytes.Buffer
		if err := writeGIF(&moving, s, nil); err != nil {
			t.Fatal(err)
		}
		if err := writeGIF(&still, s, &Options{From: s.duration}); err != nil {
			t.Fatal(err)
		}
		var a, b *image.RGBA
		replayed(t, moving.Bytes(), func(_, _ int, m *image.RGBA) { a = m })
		if g := replayed(t, still.Bytes(), func(_, _ int, m *image.RGBA) { b = m }); len(g.Image) != 1 {
			t.Fatalf("%s: the end alone has %d pictures, expected 1", name, len(g.Image))
		}
		if !bytes.Equal(a.Pix, b.Pix) {
			t.Errorf("%s: the last picture is not the last screen", name)
		}
	}
}

// Delays are rounded to hundredths so that their sum is the film's length.
func TestGIFDelaysAddUp(t *testing.T) {
	var writes []string
	for range 100 {
		writes = append(writes, "x")
	}
	var b bytes.Buffer
	if err := writeGIF(&b, script(4, 120, 33333*time.Microsecond, writes...), &Options{FPS: 50}); err != nil {
		t.Fatal(err)
	}
	sum := 0
	g := replayed(t, b.Bytes(), func(_, delay int, _ *image.RGBA) { sum += delay })
	if len(g.Image) != 100 || sum != 330+150 || g.LoopCount != 0 {
		t.Errorf("%d pictures stand %d hundredths of a second and come %d times, expected 100, 480 and 0 (for ever)", len(g.Image), sum, g.LoopCount)
	}
}

// Whatever a program does, and however its window changes: what the pictures add up to is its last screen.
func FuzzGIF(f *testing.F) {
	for _, s := range hostile {
		f.Add("first\r\n", s, uint8(7))
		f.Add(s, "\x1b[1;1Hlast\x1b[5 q", uint8(200))
	}
	f.Fuzz(func(t *testing.T, a, b string, n uint8) {
		s := script(4, 20, time.Second, a, b, b)
		s.largest = size{6, 24}
		events := s.events
		s.events = func(yield func(event, error) bool) {
			for e := range events {
				if !yield(e, nil) || !yield(event{at: e.at + time.Second/2, size: &size{1 + int(n)%6, 1 + int(n)%24}}, nil) {
					return
				}
				n += 13
			}
		}
		from := n
		var moving, still bytes.Buffer
		if err := writeGIF(&moving, s, nil); err != nil {
			t.Fatal(err)
		}
		n = from
		if err := writeGIF(&still, s, &Options{From: s.duration}); err != nil {
			t.Fatal(err)
		}
		var x, y *image.RGBA
		replayed(t, moving.Bytes(), func(_, _ int, m *image.RGBA) { x = m })
		replayed(t, still.Bytes(), func(_, _ int, m *image.RGBA) { y = m })
		if !bytes.Equal(x.Pix, y.Pix) && !coarse(x) {
			t.Fatal("the last picture is not the last screen")
		}
	})
}

// coarse says whether so many colours are shown that they may have been reduced, or their shades.
func coarse(m *image.RGBA) bool {
	seen := map[[4]byte]bool{}
	for i := 0; i < len(m.Pix); i += 4 {
		seen[[4]byte(m.Pix[i:])] = true
	}
	return len(seen) > 128
}
