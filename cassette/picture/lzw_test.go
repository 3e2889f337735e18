package picture

import (
	"bytes"
	stdlzw "compress/lzw"
	"io"
	"math/rand/v2"
	"testing"
)

func unpacked(t *testing.T, packed []byte, lit int) []byte {
	t.Helper()
	r := stdlzw.NewReader(bytes.NewReader(packed), stdlzw.LSB, lit)
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPixelsComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for lit := 2; lit <= 8; lit++ {
		for _, n := range []int{0, 1, 2, 5000, 200000} {
			for _, run := range []int{1, 3, 400, 100000} {
				pix := make([]byte, 0, n)
				for len(pix) < n {
					c := byte(rng.IntN(1 << lit))
					for range min(1+rng.IntN(run), n-len(pix)) {
						pix = append(pix, c)
					}
				}
				packed := new(lzw).compress(pix, uint(lit))
				if !bytes.Equal(unpacked(t, packed, lit), pix) {
					t.Fatalf("%d pixels of %d bits, runs of up to %d, do not come back", n, lit, run)
				}
				var std bytes.Buffer
				w := stdlzw.NewWriter(&std, stdlzw.LSB, lit)
				_, _ = w.Write(pix)
				_ = w.Close()
				if n > 0 && !bytes.Equal(std.Bytes(), packed) {
					t.Fatalf("%d pixels of %d bits, runs of up to %d: %d bytes, the standard library has %d", n, lit, run, len(packed), std.Len())
				}
			}
		}
	}
}

func FuzzPixels(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 3}, uint8(2), uint16(1))
	f.Add([]byte{7, 7, 200}, uint8(8), uint16(900))
	f.Fuzz(func(t *testing.T, some []byte, lit uint8, times uint16) {
		bits := 2 + int(lit%7)
		for i := range some {
			some[i] &= 1<<bits - 1
		}
		pix := bytes.Repeat(some, 1+int(times%1000))
		if len(pix) > 1<<20 {
			return
		}
		if !bytes.Equal(unpacked(t, new(lzw).compress(pix, uint(bits)), bits), pix) {
			t.Fatal("the pixels do not come back")
		}
	})
}
