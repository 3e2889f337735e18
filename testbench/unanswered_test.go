package testbench_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

const childEnv = "TAPEDECK_TEST_UNANSWERED"

// TestUnansweredChild fails, and is run by the test below alone.
func TestUnansweredChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("it fails")
	}
	b := testbench.New(t, nil) // the line of New
	for range 12 {
		_ = b.Processes().Command(t.Context(), "git", "status").Run() // the line of the command
	}
	_, _ = b.Model().Complete(t.Context(), &fixture.Request{Messages: "what is the time?"})
	if !t.Failed() {
		t.Log("it did not fail at once")
	}
}

// TestEveryUnansweredCallIsTold looks at what go test prints of such a test.
func TestEveryUnansweredCallIsTold(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestUnansweredChild$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("it passed")
	}
	source, err := os.ReadFile("unanswered_test.go")
	if err != nil {
		t.Fatal(err)
	}
	line := func(comment string) string {
		before, _, _ := strings.Cut(string(source), comment)
		return "unanswered_test.go:" + strconv.Itoa(strings.Count(before, "\n")+1)
	}
	for _, want := range []string{
		`(?m)^    ` + line("// the line of New") + `: testbench: nothing answered 13 calls:$`,
		`(?m)^ +	` + line("// the line of the command") + `: .*git status`,
		`(?m)^ +	and 3 more$`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "git status"); n != 10 {
		t.Errorf("%d calls are told, not 10\n%s", n, out)
	}
	if strings.Contains(string(out), "it did not fail at once") {
		t.Errorf("%s", out)
	}
}
