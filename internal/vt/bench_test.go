package vt_test

import (
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

func benchmark(b *testing.B, o *vt.Options) {
	for _, k := range workloads {
		b.Run(k.name, func(b *testing.B) {
			data := k.output(4 << 20)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				s := vt.New(o)
				for p := range slices.Chunk(data, 64<<10) {
					s.Write(p)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B)        { benchmark(b, nil) }
func BenchmarkWriteOrigins(b *testing.B) { benchmark(b, &vt.Options{Origins: true}) }
func BenchmarkNoScrollback(b *testing.B) { benchmark(b, &vt.Options{Scrollback: -1}) }

func BenchmarkLexer(b *testing.B) {
	for _, k := range workloads {
		b.Run(k.name, func(b *testing.B) {
			data := k.output(4 << 20)
			b.SetBytes(int64(len(data)))
			n := 0
			for b.Loop() {
				l := vt.NewLexer(func(t *vt.Token) { n += len(t.Data) })
				for p := range slices.Chunk(data, 64<<10) {
					l.Write(p)
				}
			}
		})
	}
}
