package tape_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tapedeck-dev/tapedeck/tape"
)

const header = `{"type":"header","version":1,"harn_version":"x","started_at_unix_ms":null,"script_path":null,"argv":[]}` + "\n"

// repeated gives one piece again and again, n times.
type repeated struct {
	piece []byte
	n     int
	rest  []byte
}

func (r *repeated) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n--
		r.rest = r.piece
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestReadingHoldsNoTape(t *testing.T) {
	piece := []byte(strings.Repeat(line(`{"kind":"env_read","name":"`+strings.Repeat("a", 1000)+`"}`)+"\n", 64))
	r, err := tape.NewReader(io.MultiReader(strings.NewReader(header), &repeated{piece: piece, n: 1000}), "long")
	if err != nil {
		t.Fatal(err)
	}
	n, most := 0, uint64(0)
	for _, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%16000 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	if n != 64000 || most > 32<<20 {
		t.Errorf("%d records, %d bytes held at most", n, most)
	}
}

func TestALineWithoutEndIsRefused(t *testing.T) {
	endless := &repeated{piece: bytes.Repeat([]byte("a"), 1<<20), n: tape.MaxLine>>20 + 1}
	r, err := tape.NewReader(io.MultiReader(strings.NewReader(header), endless), "endless")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Records() {
		var at *tape.LoadError
		if !errors.Is(err, tape.ErrLineTooLong) || !errors.As(err, &at) || at.Line != 2 {
			t.Errorf("got %v", err)
		}
	}
	if n := endless.n; n != 0 {
		t.Logf("%d MiB were not read", n)
	}
}

func TestALongLineIsRead(t *testing.T) {
	name := strings.Repeat("é\"", 1<<20)
	var buf bytes.Buffer
	w, err := tape.NewWriter(&buf, &tape.Header{Producer: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Append(&tape.Record{Kind: &tape.EnvRead{VarName: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(&tape.Record{Kind: &tape.EnvRead{VarName: strings.Repeat("a", tape.MaxLine)}}); !errors.Is(err, tape.ErrLineTooLong) {
		t.Errorf("a line that no reader takes: %v", err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, rec := range loadAll(t, buf.Bytes()) {
		if rec.Kind.(*tape.EnvRead).VarName != name {
			t.Error("read another name")
		}
	}
}

func TestRangingAgainGoesOn(t *testing.T) {
	in := header + line(`{"kind":"env_read","name":"a"}`) + "\n\n" + line(`{"kind":"env_read","name":"b"}`) + "\n"
	r, err := tape.NewReader(iotest.OneByteReader(strings.NewReader(in)), "tape")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var at []int
	for range 3 {
		for rec, err := range r.Records() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, rec.Kind.(*tape.EnvRead).VarName)
			at = append(at, r.Line())
			break
		}
	}
	if len(got) != 2 || got[0] != "a" || got[1] != "b" || at[0] != 2 || at[1] != 4 {
		t.Errorf("got %v on lines %v", got, at)
	}
}

func TestTheErrorOfTheDiskIsPassedOn(t *testing.T) {
	in := io.MultiReader(strings.NewReader(header+line(`{"kind":"x"}`)), iotest.ErrReader(errFull))
	r, err := tape.NewReaderOptions(in, "tape", &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range r.Records() {
		if n++; !errors.Is(err, errFull) {
			t.Errorf("got %v", err)
		}
	}
	if n != 1 || r.Torn() {
		t.Errorf("%d results, torn %t", n, r.Torn())
	}
}

// A crash may cut a tape anywhere. What is whole before the cut loads.
func TestATapeCutAnywhereLoadsToItsLastWholeRecord(t *testing.T) {
	whole := corpusTape(t, "good-every-kind")
	first := bytes.IndexByte(whole, '\n')
	for cut := range whole {
		r, err := tape.NewReaderOptions(bytes.NewReader(whole[:cut]), "cut", &tape.ReaderOptions{Tolerant: true})
		if (err == nil) != (cut >= first) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if err != nil {
			continue
		}
		n := 0
		for _, err := range r.Records() {
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			n++
		}
		want := max(0, bytes.Count(whole[:cut+1], []byte("\n"))-1) // whole without its newline is whole
		if atEnd := whole[cut] == '\n' || whole[max(cut-1, 0)] == '\n'; n != want || r.Torn() == atEnd {
			t.Fatalf("cut at %d: %d records of %d, torn %t", cut, n, want, r.Torn())
		}
	}
}
