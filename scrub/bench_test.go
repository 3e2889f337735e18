package scrub_test

import (
	"bytes"
	"fmt"
	"go/build"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
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

// code is Go as agents read it, with words in it that names of services begin with.
var code = func() []byte {
	var b bytes.Buffer
	for _, name := range []string{"net/http/server.go", "net/http/transport.go", "encoding/json/decode.go", "go/parser/parser.go"} {
		text, err := os.ReadFile(filepath.Join(build.Default.GOROOT, "src", name))
		if err == nil {
			b.Write(text)
		}
	}
	return b.Bytes()
}()

// BenchmarkFresh scans texts that were not seen before: an index forgets them when a value is added.
func BenchmarkFresh(b *testing.B) {
	for name, text := range map[string][]byte{"JSON": harmless, "code": code} {
		b.Run(name, func(b *testing.B) {
			s := scrub.New(testKey, &scrub.Options{Env: knownEnv()})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				scrub.Forget(s)
				s.Bytes(text)
			}
		})
		b.Run(name+" own shapes alone", func(b *testing.B) {
			s := scrub.New(testKey, &scrub.Options{Env: knownEnv(), Rules: scrub.RulesForeign})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				scrub.Forget(s)
				s.Bytes(text)
			}
		})
		b.Run(name+" copied", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			to := make([]byte, len(text))
			for b.Loop() {
				copy(to, text)
			}
		})
		b.Run(name+" searched for 20 values", func(b *testing.B) {
			var values [][]byte
			for _, v := range knownEnv() {
				_, value, _ := strings.Cut(v, "=")
				values = append(values, []byte(value))
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for _, v := range values {
					if bytes.Contains(text, v) {
						b.Fatal("found something")
					}
				}
			}
		})
	}
}

// BenchmarkNames is the worst that gitleaks' shapes do to a text: the names of services again and again.
func BenchmarkNames(b *testing.B) {
	text := []byte(strings.Repeat("twitter_api: discord = linkedin, sentry => twitter, facebook: okta ", 1000))
	s := scrub.New(testKey, nil)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		scrub.Forget(s)
		s.Bytes(text)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		scrub.New(testKey, nil)
	}
}

// BenchmarkBytes scans the same text again, as every request of a conversation makes it.
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

// BenchmarkCopy is what the others are held against: the least that anything does with a text.
func BenchmarkCopy(b *testing.B) {
	b.SetBytes(int64(len(harmless)))
	for b.Loop() {
		if len(bytes.Clone(harmless)) == 0 {
			b.Fatal("nothing was copied")
		}
	}
}

func BenchmarkAddSecret(b *testing.B) {
	for b.Loop() {
		scrub.New(testKey, &scrub.Options{Env: knownEnv()})
	}
}

func BenchmarkMask(b *testing.B) {
	m := masks.New(&masks.Options{Home: "/home/ann", WorkTree: "/home/ann/proj", Temp: "/run/t"})
	b.SetBytes(int64(len(harmless)))
	for b.Loop() {
		m.Mask(harmless)
	}
}

// BenchmarkSeek scans texts that were not seen before, where nothing is sought and where one secret is.
func BenchmarkSeek(b *testing.B) {
	secrets := []scrub.Secret{{Placeholder: "td_x_0123456789ab", Shape: ":28:aA0_-"}}
	for name, text := range map[string][]byte{"JSON": harmless, "code": code} {
		for what, sought := range map[string][]scrub.Secret{"nothing": nil, "one": secrets} {
			b.Run(name+" "+what, func(b *testing.B) {
				s := scrub.New(testKey, &scrub.Options{Env: knownEnv()})
				s.Seek(sought)
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					scrub.Forget(s)
					s.Bytes(text)
				}
			})
		}
	}
}
