package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

var _ check.StyledScreen = (*terminal.Screen)(nil)

// A told is a TB that keeps what it is told.
type told struct{ errs []string }

func (*told) Helper()                     {}
func (t *told) Errorf(f string, a ...any) { t.errs = append(t.errs, fmt.Sprintf(f, a...)) }
func (t *told) Fatalf(f string, a ...any) { t.Errorf(f, a...) }
func (t *told) text() string              { return strings.Join(t.errs, "\n") }

// screenAt returns the screen of the session after the event seq.
func screenAt(t *testing.T, dir string, seq uint64) (check.StyledScreen, func()) {
	t.Helper()
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range r.Screens(nil) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Seq == seq {
			return check.OfModel(s.Screen), func() { r.Close() }
		}
	}
	t.Fatalf("no event %d", seq)
	return nil, nil
}

func TestGolden(t *testing.T) {
	s, done := screenAt(t, session(t), 8)
	defer done()
	check.Golden(t, s, "testdata/hello.screen")
	check.GoldenStyled(t, s, "testdata/hello-styled.screen")
}

func TestGoldenOfARecordedFrame(t *testing.T) {
	r, err := cassette.Open(session(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := r.LastFrame()
	if err != nil {
		t.Fatal(err)
	}
	check.Golden(t, check.OfFrame(f), "testdata/bye.screen")
}

func TestGoldenSaysWhatDiffers(t *testing.T) {
	if check.UpdateFlag().Value.String() == "true" {
		t.Skip("with -update nothing differs")
	}
	t.Setenv(check.UpdateEnv, "")
	path := filepath.Join(t.TempDir(), "x.screen")
	var none told
	check.Golden(&none, check.OfText("one\ntwo\nthree"), path)
	if !strings.Contains(none.text(), "there is no golden screen") || !strings.Contains(none.text(), "|two") {
		t.Errorf("expected a missing file to be told with the screen, got %s", none.text())
	}
	if err := os.WriteFile(path, []byte(check.GoldenText(check.OfText("one\ntoo\nthree"))), 0o600); err != nil {
		t.Fatal(err)
	}
	var other told
	check.Golden(&other, check.OfText("one\ntwo\nthree"), path)
	for _, want := range []string{"-|too", "+|two", " |three", "-update"} {
		if !strings.Contains(other.text(), want) {
			t.Errorf("expected %q in\n%s", want, other.text())
		}
	}
	t.Setenv(check.UpdateEnv, "1")
	check.Golden(t, check.OfText("one\ntwo\nthree"), path)
	t.Setenv(check.UpdateEnv, "")
	check.Golden(t, check.OfText("one\ntwo\nthree\n"), path)
}

func TestUpdateFlagTakesTheOneThatIsThere(t *testing.T) {
	if a, b := check.UpdateFlag(), check.UpdateFlag(); a != b || a.Name != "update" {
		t.Errorf("expected one flag, got %v and %v", a, b)
	}
}
