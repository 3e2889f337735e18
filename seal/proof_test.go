package seal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/seal"
)

func prove(t testing.TB, dir string, o *seal.ProveOptions) []byte {
	t.Helper()
	p, err := seal.Prove(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return p.Encode()
}

func at(n int64) *int64 { return &n }

// everyProof are proofs of all kinds of leaves, with what each proves.
var everyProof = []struct {
	name     string
	o        seal.ProveOptions
	data     string
	payloads []string
}{
	{"a record", seal.ProveOptions{Seq: 0, Payloads: true}, `{"type":"record","seq":0,`, []string{"the first blob"}},
	{"a record alone", seal.ProveOptions{Seq: 2}, `{"type":"record","seq":2,`, nil},
	{"a header", seal.ProveOptions{Leaf: at(0)}, `{"type":"header"`, nil},
	{"an event", seal.ProveOptions{Path: "session.jsonl", Seq: 1, Payloads: true}, `{"seq":1,"event"`, nil},
	{"a frame", seal.ProveOptions{Path: "terminal/frames.jsonl", Seq: 2}, `{"seq":2,"t_ms":1`, nil},
	{"a chunk that is text", seal.ProveOptions{Path: "terminal/output.raw", Leaf: at(0)}, "hello", nil},
	{"a chunk that is none", seal.ProveOptions{Path: "terminal/output.raw", Leaf: at(1)}, "\x1b[1mworld\xff", nil},
	{"a file", seal.ProveOptions{Path: "recording.json", Payloads: true}, `{"blake3":"`, []string{`{"id":"20261122-test","format":1}`}},
	{"a file by number", seal.ProveOptions{Path: ".", Leaf: at(1), Payloads: true}, `{"blake3":"`, []string{`{"version":1}`}},
	{"a blob", seal.ProveOptions{Path: firstBlob, Payloads: true}, filepath.Base(firstBlob) + " 14\n", []string{"the first blob"}},
	{"a blob by number", seal.ProveOptions{Path: "run.tape.cas", Leaf: at(1), Payloads: true}, filepath.Base(firstBlob) + " 14\n", []string{"the first blob"}},
}

func TestProofs(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	for _, c := range everyProof {
		t.Run(c.name, func(t *testing.T) {
			b := prove(t, dir, &c.o)
			p, err := seal.VerifyProof(b, &seal.ProofOptions{Keys: []seal.PublicKey{k.Public()}})
			if err != nil {
				t.Fatal(err)
			}
			if !p.SignerKnown || p.Signer != k.Public() || p.ID != "20261122-test" || !strings.HasPrefix(string(p.Data), c.data) || len(p.Payloads) != len(c.payloads) {
				t.Fatalf("%+v", p)
			}
			for i := range p.Payloads {
				if string(p.Payloads[i].Bytes) != c.payloads[i] {
					t.Errorf("%q", p.Payloads[i].Bytes)
				}
			}
			again, err := seal.ParseProof(b)
			if err != nil || !bytes.Equal(again.Encode(), b) {
				t.Errorf("it is written in another form: %v", err)
			}
			other := newKey(t).Public()
			var bad *seal.Problem
			if _, err := seal.VerifyProof(b, &seal.ProofOptions{Keys: []seal.PublicKey{other}}); !errors.As(err, &bad) || bad.Code != seal.CodeSigner {
				t.Error(err)
			}
		})
	}
}

// TestEveryBitOfAProof flips each bit of each proof.
func TestEveryBitOfAProof(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	for _, c := range everyProof {
		b := prove(t, dir, &c.o)
		for i := range b {
			for bit := range 8 {
				if !long && (i%4 != 0 || bit != i/4%8) {
					continue
				}
				b[i] ^= 1 << bit
				for _, o := range []*seal.ProofOptions{{Keys: []seal.PublicKey{k.Public()}}, nil} {
					var bad *seal.Problem
					if _, err := seal.VerifyProof(b, o); !errors.As(err, &bad) {
						t.Errorf("%s: bit %d of byte %d: %v", c.name, bit, i, err)
					}
				}
				b[i] ^= 1 << bit
			}
		}
	}
}

func TestNoSuchLeaf(t *testing.T) {
	dir := small(t)
	sealed(t, dir)
	for name, o := range map[string]*seal.ProveOptions{
		"seq":             {Seq: 3},
		"leaf":            {Leaf: at(4)},
		"negative leaf":   {Leaf: at(-1)},
		"file":            {Path: "none"},
		"outside":         {Path: "../x"},
		"blob":            {Path: "run.tape.cas/" + cas.Sum(nil).String()},
		"no name":         {Path: "run.tape.cas/x"},
		"chunk":           {Path: "terminal/output.raw", Leaf: at(2)},
		"seq of a chunk":  {Path: "terminal/output.raw"},
		"an empty stream": {Path: "terminal/input.jsonl"},
		"annotations":     {Path: "run.tape.annotations.jsonl"},
	} {
		if p, err := seal.Prove(context.Background(), dir, o); !errors.Is(err, seal.ErrNoLeaf) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// TestProveWhatChanged asks for a proof of what is not what was sealed.
func TestProveWhatChanged(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*testing.T, string)
		o    seal.ProveOptions
		code seal.Code
	}{
		"the record":      {edit("run.tape", replace(`"len_bytes":14`, `"len_bytes":15`)), seal.ProveOptions{Seq: 0}, seal.CodeProof},
		"the tiles":       {edit("seal.tiles/run.tape.0", func(b []byte) []byte { b[0] ^= 1; return b }), seal.ProveOptions{Seq: 0}, seal.CodeTiles},
		"no tiles":        {remove("seal.tiles"), seal.ProveOptions{Seq: 0}, seal.CodeTiles},
		"tiles cut":       {edit("seal.tiles/run.tape.0", func(b []byte) []byte { return b[:20] }), seal.ProveOptions{Seq: 0}, seal.CodeTiles},
		"the blob":        {edit(firstBlob, replace("first", "First")), seal.ProveOptions{Seq: 0, Payloads: true}, seal.CodePayload},
		"the blob's name": {edit("seal.tiles/run.tape.cas.names", replace(" 14", " 15")), seal.ProveOptions{Path: firstBlob}, seal.CodeProof},
		"the list":        {remove("seal.tiles/run.tape.cas.names"), seal.ProveOptions{Path: firstBlob}, seal.CodeTiles},
		"a cut tape":      {edit("run.tape", lines(func(l []string) []string { return l[:1] })), seal.ProveOptions{Leaf: at(2)}, seal.CodeCut},
		"a file":          {edit("recording.json", replace("format", "Format")), seal.ProveOptions{Path: "recording.json", Payloads: true}, seal.CodePayload},
		"chunks":          {edit("terminal/output.jsonl", func([]byte) []byte { return nil }), seal.ProveOptions{Path: "terminal/output.raw", Leaf: at(1)}, seal.CodeChanged},
	} {
		dir := small(t)
		sealed(t, dir)
		c.do(t, dir)
		var bad *seal.Problem
		if p, err := seal.Prove(context.Background(), dir, &c.o); !errors.As(err, &bad) || bad.Code != c.code {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	// The places that are stored are no evidence: without them, or with wrong ones, the proof is the same.
	dir := small(t)
	sealed(t, dir)
	want := prove(t, dir, &seal.ProveOptions{Seq: 2})
	edit("seal.tiles/run.tape.offsets", func(b []byte) []byte { return []byte("\xff\xff\xff\xff\xff\xff\xff\xff") })(t, dir)
	if !bytes.Equal(prove(t, dir, &seal.ProveOptions{Seq: 2}), want) {
		t.Error("another proof")
	}
	remove("seal.tiles/run.tape.offsets")(t, dir)
	if !bytes.Equal(prove(t, dir, &seal.ProveOptions{Seq: 2}), want) {
		t.Error("another proof")
	}
}

// TestProofsOfManyLeaves proves leaves of streams that have several levels of tiles, in order of seq and in none.
func TestProofsOfManyLeaves(t *testing.T) {
	for _, n := range []int{1, 2, 255, 256, 257, 512, 1000, 65_536, 70_001} {
		for _, order := range []string{"ascending", "descending", "blank lines"} {
			if n > 1000 && (order == "descending" || !long && (n > 65_536 || order == "blank lines")) {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", n, order), func(t *testing.T) {
				dir := t.TempDir()
				var text strings.Builder
				blanks := 0
				for i := range n {
					seq := i
					if order == "descending" {
						seq = n - 1 - i
					}
					if order == "blank lines" && i%3 == 0 {
						text.WriteString("\n")
						blanks++
					}
					fmt.Fprintf(&text, `{"seq":%d,"x":"%d"}`+"\n", seq, seq*7)
				}
				put(t, dir, map[string]string{"recording.json": `{"id":"many"}`, "run.tape": text.String()})
				k := sealed(t, dir)
				if r := verify(t, dir, nil); !r.OK() || r.Leaves != int64(n+blanks+1) || r.Bytes != int64(text.Len()+13) {
					t.Fatalf("%+v", r)
				}
				for _, i := range []int{0, n / 3, n / 2, n - 2, n - 1} {
					if i < 0 {
						continue
					}
					b := prove(t, dir, &seal.ProveOptions{Seq: uint64(i)})
					p, err := seal.VerifyProof(b, &seal.ProofOptions{Keys: []seal.PublicKey{k.Public()}})
					if err != nil || string(p.Data) != fmt.Sprintf(`{"seq":%d,"x":"%d"}`+"\n", i, i*7) {
						t.Errorf("%d: %v, %v", i, p, err)
					}
				}
			})
		}
	}
}

// TestALongLine seals lines that are longer than what is read at once.
func TestALongLine(t *testing.T) {
	dir := t.TempDir()
	long := `{"seq":1,"x":"` + strings.Repeat("y", 3<<20) + `"}` + "\n"
	put(t, dir, map[string]string{"recording.json": `{"id":"long"}`, "run.tape": `{"seq":0}` + "\n" + long + `{"seq":2}` + "\n" + long + strings.Repeat("z", 2<<20)})
	sealed(t, dir)
	r := verify(t, dir, nil)
	if !r.OK() || r.Leaves != 6 {
		t.Fatalf("%+v", r)
	}
	p, err := seal.VerifyProof(prove(t, dir, &seal.ProveOptions{Seq: 1}), nil)
	if err != nil || string(p.Data) != long {
		t.Error(err)
	}
	edit("run.tape", func(b []byte) []byte { b[len(b)-3<<20] ^= 1; return b })(t, dir)
	r = verify(t, dir, nil)
	(&tampering{code: seal.CodeChanged, path: "run.tape", line: 4, leaf: 3}).check(t, r.Problems)
}

// TestHostileProofs gives proofs that hold in part.
func TestHostileProofs(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	whole := string(prove(t, dir, &seal.ProveOptions{Seq: 1, Payloads: true}))
	for name, c := range map[string]struct {
		text string
		code seal.Code
	}{
		"empty":                {"", seal.CodeNotJSON},
		"brackets":             {strings.Repeat("[", 1_000_000), seal.CodeNotJSON},
		"a space":              {strings.Replace(whole, `"format":1`, `"format": 1`, 1), seal.CodeNotCanonical},
		"a key twice":          {strings.Replace(whole, `"format":1`, `"format":1,"format":1`, 1), seal.CodeDuplicateKey},
		"a later format":       {strings.Replace(whole, `"format":1`, `"format":9`, 1), seal.CodeVersion},
		"a newline":            {whole + "\n", seal.CodeNotCanonical},
		"another leaf":         {strings.Replace(whole, `"at":2`, `"at":1`, 1), seal.CodeProof},
		"a leaf beyond":        {strings.Replace(whole, `"at":2`, `"at":9007199254740991`, 1), seal.CodeProof},
		"another record":       {strings.Replace(whole, `\"seq\":1`, `\"seq\":2`, 1), seal.CodeProof},
		"another payload":      {strings.Replace(whole, `"text":"another one`, `"text":"Another one`, 1), seal.CodePayload},
		"another recording":    {strings.Replace(whole, `"id":"20261122-test"`, `"id":"20261123-test"`, 1), seal.CodeCheckpoint},
		"a payload of nothing": {strings.Replace(whole, `"payloads":[`, `"payloads":[{"blake3":"`+cas.Sum([]byte("x")).String()+`","text":"x"},`, 1), seal.CodePayload},
		"more leaves":          {strings.Replace(whole, `"leaves":4`, `"leaves":5`, 1), seal.CodeProof},
		"no streams":           {strings.Replace(whole, `"streamPath":[`, `"streamPath":[`+strings.Repeat(`"`+strings.Repeat("0", 64)+`",`, 64), 1), seal.CodeMalformed},
	} {
		if c.text == whole {
			t.Errorf("%s: nothing was changed", name)
		}
		for _, o := range []*seal.ProofOptions{{Keys: []seal.PublicKey{k.Public()}}, nil} {
			var bad *seal.Problem
			if _, err := seal.VerifyProof([]byte(c.text), o); !errors.As(err, &bad) || bad.Code != c.code {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
