package scrub_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// harmless is a body as models get it, without secrets: prose, code, JSON escapes, ids and numbers.
var harmless = []byte(strings.Repeat(`{"role":"user","content":"The function reads the file, skips the header and writes `+
	`each record.\nfunc main() {\n\tfor i := 0; i < 42; i++ {\n\t\tfmt.Println(\"task\", i, base+key)\n\t}\n}\n `+
	`See https://example.com/docs/getting-started#keys, commit da39a3ee5e6b4b0d3255bfef95601890afd80709."},`, 200))

// known is a program's environment: twenty secrets.
func knownEnv() (env []string) {
	for i := range 20 {
		env = append(env, fmt.Sprintf("SERVICE_%d_TOKEN=%c%dqT7xVb2LmNpRs", i, 'a'+i, i))
	}
	return env
}

func BenchmarkBytes(b *testing.B) {
	s := scrub.New(testKey, &scrub.Options{Env: knownEnv()})
	b.SetBytes(int64(len(harmless)))
	for b.Loop() {
		if _, found := s.Bytes(harmless); found {
			b.Fatal("found something")
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	s := scrub.New(testKey, &scrub.Options{Env: knownEnv()})
	b.SetBytes(int64(len(harmless)))
	for b.Loop() {
		w := s.Writer(io.Discard)
		for rest := harmless; len(rest) > 0; rest = rest[min(len(rest), 1400):] {
			if _, err := w.Write(rest[:min(len(rest), 1400)]); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddSecret(b *testing.B) {
	for b.Loop() {
		scrub.New(testKey, &scrub.Options{Env: knownEnv()})
	}
}

func BenchmarkMask(b *testing.B) {
	m := scrub.NewMasker(&maskOptions)
	b.SetBytes(int64(len(harmless)))
	for b.Loop() {
		m.Mask(harmless)
	}
}
