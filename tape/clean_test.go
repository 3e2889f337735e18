package tape_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const sesame = "open sesame now"

func hideSesame(b []byte) []byte {
	return bytes.ReplaceAll(b, []byte(sesame), []byte("td_word_000000000001"))
}

// TestCleanTakesOutOfEverything puts a secret into every string, payload and further key of every kind.
func TestCleanTakesOutOfEverything(t *testing.T) {
	in := "in " + sesame + ", out"
	for _, kind := range cleanKinds() {
		t.Run(kind.Name(), func(t *testing.T) {
			var out bytes.Buffer
			store := cas.NewMemory()
			w, err := tape.NewWriter(&out, &tape.Header{Producer: "test"})
			if err != nil {
				t.Fatal(err)
			}
			rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: store, Clean: hideSesame})
			for _, s := range tape.Strings(kind) {
				*s = in
			}
			if x := tape.ExchangeOf(kind); x != nil {
				p, err := rec.Payload([]byte(in))
				if err != nil {
					t.Fatal(err)
				}
				x.RequestPayload = p
			}
			if extra := tape.Extras(kind); extra != nil {
				*extra = []tape.Field{{Name: "more", Value: []byte(`["` + in + `"]`)}}
			}
			if err := rec.RecordRaw(kind, []tape.RawBytes{{Key: "path", Bytes: []byte(in)}}); err != nil {
				t.Fatal(err)
			}
			if err := rec.Flush(); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), sesame) {
				t.Errorf("the secret is on the tape: %s", out.String())
			}
			for _, s := range tape.Strings(kind) {
				if *s != in {
					t.Errorf("the caller's string was changed: %q", *s)
				}
			}
			checkLoads(t, &out)
		})
	}
}

// checkLoads reads a tape of one record back; its inline payloads must hash to their names.
func checkLoads(t *testing.T, r *bytes.Buffer) {
	t.Helper()
	f, err := tape.NewReader(r, "tape")
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if len(rec.Raw) != 1 || bytes.Contains(rec.Raw[0].Bytes, []byte(sesame)) {
			t.Errorf("raw %q", rec.Raw)
		}
		for _, p := range tape.Payloads(rec.Kind) {
			if _, err := p.Bytes(cas.NewMemory()); err != nil {
				t.Errorf("a payload does not hash to its name: %v", err)
			}
		}
	}
}

func cleanKinds() []tape.Kind {
	headers := func() []tape.HeaderField { return make([]tape.HeaderField, 2) }
	cwd := ""
	return []tape.Kind{
		&tape.LLMCall{Exchange: tape.Exchange{RequestHeaders: headers(), ResponseHeaders: headers()}},
		&tape.HTTPExchange{Exchange: tape.Exchange{RequestHeaders: headers()}},
		&tape.FileRead{}, &tape.FileWrite{}, &tape.FileDelete{}, &tape.FileStat{}, &tape.DirList{},
		&tape.ProcessSpawn{Args: make([]string, 3), Cwd: &cwd}, &tape.MCPJSONRPC{}, &tape.MCPOpen{Args: make([]string, 1)},
		&tape.MCPText{}, &tape.MCPClose{}, &tape.WSOpen{RequestHeaders: headers()}, &tape.WSMessage{}, &tape.WSClose{},
		&tape.TLSRefused{}, &tape.NetRefused{}, &tape.EnvRead{}, &tape.RandomRead{}, &tape.PolicyVerdict{},
	}
}

// TestCleanPayload has a payload hashed as it is written, inline and in the store.
func TestCleanPayload(t *testing.T) {
	store := cas.NewMemory()
	w, err := tape.NewWriter(new(bytes.Buffer), &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: store, Clean: hideSesame})
	for _, pad := range []string{"", strings.Repeat("x", tape.InlineLimit)} {
		in := []byte(pad + sesame)
		p, err := rec.Payload(in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Bytes(store)
		if err != nil || !bytes.Equal(got, hideSesame(in)) || p.Hash != cas.Sum(got) || !bytes.Equal(got, rec.Clean(in)) {
			t.Errorf("%.60q, %v", got, err)
		}
	}
	for d, err := range store.All() {
		if b, _ := store.Get(d); err != nil || bytes.Contains(b, []byte(sesame)) {
			t.Errorf("blob %s holds the secret (%v)", d, err)
		}
	}
	if b := []byte(sesame); string((*tape.Recorder)(nil).Clean(b)) != sesame {
		t.Error("a nil recorder cleans")
	}
}
