package tape_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// samples returns the folder of other producers' files, which lies beside the checkout where there is one.
func samples(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "..", "shared", "samples")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no samples of other producers in %s", dir)
	}
	return dir
}

func TestSampleOfAnotherProducerSavesToTheSameBytes(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(samples(t), "harn", "replay_fidelity.testbench-tape"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tape.NewReader(bytes.NewReader(b), "sample")
	if err != nil {
		t.Fatal(err)
	}
	var records []*tape.Record
	for rec, err := range r.Records() {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	out := save(t, r.Header(), records)
	if !bytes.Equal(out, b) {
		t.Errorf("saved:\n%s\nloaded:\n%s", out, b)
	}
}
