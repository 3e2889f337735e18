package recording

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestManifestDoc holds the table of the package comment to the keys of recording.json that may be absent.
func TestManifestDoc(t *testing.T) {
	b, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for f := range reflect.TypeFor[Manifest]().Fields() {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, rest, told := strings.Cut(string(b), "\n//\t"+key+" "); strings.Contains(options, "omitempty") != (told && strings.Contains(rest, "; absent: ")) {
			t.Errorf("%s: told %v", key, told)
		}
	}
}
