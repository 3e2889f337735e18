package ambient

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestAnswers gives what was kept by what was asked, in order.
func TestAnswers(t *testing.T) {
	a, err := NewAnswers(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Gave("read /proc/uptime", []byte("1.0 secret\n"))
	a.Gave("statfs /", []byte{0xff, 0})
	a.Gave("read /proc/uptime", []byte("2.0\n"))
	a.Gave("read /proc/none", nil)
	again, err := NewAnswers(false, a.Encode(func(s string) string { return strings.ReplaceAll(s, "secret", "hidden") }))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ asked, want string }{
		{"read /proc/uptime", "1.0 hidden\n"}, {"read /proc/uptime", "2.0\n"}, {"read /proc/uptime", ""},
		{"statfs /", "\xff\x00"}, {"statfs /other", ""}, {"read /proc/none", ""},
	} {
		if got := string(again.Next(c.asked)); got != c.want {
			t.Errorf("%d: %s is %q, want %q", i, c.asked, got, c.want)
		}
	}
	again.Gave("statfs /", []byte("kept by nobody"))
	if b := again.Encode(strings.Clone); b != nil {
		t.Errorf("kept %s", b)
	}
	if _, err := NewAnswers(true, []byte("{")); !errors.Is(err, ErrAnswers) {
		t.Error("no answers:", err)
	}
}

// TestUnlisted: who was told of the first process was told of all that were there.
func TestUnlisted(t *testing.T) {
	for _, c := range []struct {
		asked []string
		pid   int
		want  bool
	}{
		{[]string{"read /proc/1/stat", "read /proc/100/stat"}, 1000, true},
		{[]string{"read /proc/1/stat", "read /proc/100/stat"}, 100, false},
		{[]string{"read /proc/100/stat", "read /proc/self/stat", "read /proc/1"}, 1000, false},
		{[]string{"read /proc/1/cgroup", "read /proc/self/stat"}, 1000, false}, // looks whether it is in a container
		{nil, 1000, false},
	} {
		kept, _ := NewAnswers(true, nil)
		for _, asked := range c.asked {
			kept.Gave(asked, []byte("S"))
		}
		again, err := NewAnswers(false, kept.Encode(strings.Clone))
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Unlisted(c.pid, 100); got != c.want {
			t.Errorf("%d after %q: %v", c.pid, c.asked, got)
		}
		if got := again.Listed(100); slices.Contains(got, 100) != (len(got) > 0) || c.want && !slices.Equal(got, []int{1, 100}) {
			t.Errorf("listed after %q: %v", c.asked, got)
		}
	}
}

// TestTicks goes on from what was given, as far from the kernel's clock as that was.
func TestTicks(t *testing.T) {
	log := new(Heard)
	s := log.Stream(Ticks(), new(Places))
	first, second := s.Now(0), s.Now(0)
	times, _ := s.Times()
	clock := NewTicks()
	if behindNow(clock) != 0 {
		t.Error("behind before anything was given:", behindNow(clock))
	}
	g, _, err := clock.Given(times)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := g.Now(0), g.Now(0); a != first || b != second {
		t.Errorf("%d, %d, want %d, %d", a, b, first, second)
	}
	if c := g.Now(0); c < second || g.Behind() <= 0 || clock.Beyond() != 1 {
		t.Errorf("beyond: %d after %d, %d behind, %d beyond", c, second, g.Behind(), clock.Beyond())
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`[{"asked":"read /proc/uptime","text":"1.0"},{"asked":"statfs /","bytes":"/wA="}]`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if a, err := NewAnswers(true, b); err == nil {
			a.Next("statfs /")
		}
	})
}

func behindNow(c *Clock) int64 {
	behind, _ := c.leftBehind()
	return behind
}
