package bench

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A sourceTree is a tree of files made up to look like one of source: text of 1 to 16 KB, most of it short, 20 files in a
// directory. The same n give the same tree.
type sourceTree struct{ n int }

// files calls f for each file, those of a directory one after the other.
func (s sourceTree) files(f func(name string, content []byte) error) error {
	rng := rand.New(rand.NewPCG(5, 20000))
	for i := range s.n {
		dir := i / 20
		name := path.Join(fmt.Sprintf("pkg%02d", dir/25), fmt.Sprintf("part%02d", dir%25), fmt.Sprintf("file%05d.go", i))
		if err := f(name, sourceText(rng, i)); err != nil {
			return err
		}
	}
	return nil
}

// sourceText is a text of words and lines that stands in no other file.
func sourceText(rng *rand.Rand, i int) []byte {
	size := int(min(16<<10, max(1<<10, math.Exp(8.1+0.8*rng.NormFloat64()))))
	var b strings.Builder
	fmt.Fprintf(&b, "package part\n\n// File %d.\n", i)
	for b.Len() < size {
		fmt.Fprintf(&b, "func %s%d(%s %s) (%s, error) {\n\treturn %s(%s), nil\n}\n\n", sourceWord(rng), rng.IntN(1000),
			sourceWord(rng), sourceWord(rng), sourceWord(rng), sourceWord(rng), sourceWord(rng))
	}
	return []byte(b.String()[:size])
}

var sourceWords = strings.Fields("append buffer chunk close copy decode digest encode entry error field file frame header index " +
	"length limit line map name offset open parse path payload read record reset result root size stamp start state store " +
	"stream string table tape token tree value walk write")

// sourceWord is a name in camel case.
func sourceWord(rng *rand.Rand) string {
	first, second := sourceWords[rng.IntN(len(sourceWords))], sourceWords[rng.IntN(len(sourceWords))]
	return first + strings.ToUpper(second[:1]) + second[1:]
}

// write makes the tree in dir.
func (s sourceTree) write(dir string) error {
	return s.files(func(name string, content []byte) error {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, content, 0o644)
	})
}

// archive makes a tar of the tree, through gzip where the file's name says so.
func (s sourceTree) archive(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(f)
	var to io.Writer = buf
	finish := func() error { return nil }
	if strings.HasSuffix(file, ".gz") {
		z := gzip.NewWriter(buf)
		to, finish = z, z.Close
	}
	return errors.Join(s.tar(to), finish(), buf.Flush(), f.Close())
}

func (s sourceTree) tar(w io.Writer) error {
	t := tar.NewWriter(w)
	err := s.files(func(name string, content []byte) error {
		h := &tar.Header{Name: "source/" + name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(1_700_000_000, 0)}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err := t.Write(content)
		return err
	})
	return errors.Join(err, t.Close())
}
