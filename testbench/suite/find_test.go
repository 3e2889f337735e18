package suite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

// put writes files below a directory of its own and goes there.
func put(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindGoesBelow(t *testing.T) {
	put(t, map[string]string{
		"b_test.star": "", "b.star": "", "a/deep/c_test.star": "", "a/.hidden/d_test.star": "", "a/x_test.files/e_test.star": "", "empty/x": "",
	})
	for _, tt := range []struct{ paths, want []string }{
		{[]string{"."}, []string{"a/deep/c_test.star", "b_test.star"}},
		{[]string{"./b_test.star", "a", ".", "b_test.star"}, []string{"a/deep/c_test.star", "b_test.star"}},
		{[]string{"a/.hidden"}, []string{"a/.hidden/d_test.star"}},
	} {
		got, err := suite.Find(tt.paths...)
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("below %v: %v, %v", tt.paths, got, err)
		}
	}
	if _, err := suite.Find("."); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"empty", "b.star"} {
		if got, err := suite.Find(path); !errors.Is(err, suite.ErrNone) {
			t.Errorf("below %s: %v, %v", path, got, err)
		}
	}
	if _, err := suite.Find("nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nowhere: %v", err)
	}
}
