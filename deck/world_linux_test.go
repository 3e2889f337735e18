package deck

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// TestLayersGoAfterTheirMounts: a scratch is there until the init, which holds the mounts of its layers, is gone.
func TestLayersGoAfterTheirMounts(t *testing.T) {
	prepared, err := jail.Prepare()
	if err == nil {
		err = prepared.Check()
	}
	if err != nil {
		t.Skip("no jail here:", err)
	}
	s, err := newScratch("order-", nil)
	if err != nil {
		prepared.Close()
		t.Fatal(err)
	}
	left := make(chan []string)
	go func() {
		for {
			if _, err := os.Lstat(s.Dir); err != nil {
				left <- ourInits(t)
				return
			}
		}
	}()
	s.removeAfter(prepared)
	if inits := <-left; len(inits) > 0 {
		t.Errorf("the scratch was removed while inits were there: %v", inits)
	}
}

// ourInits lists the children of this process that are inits.
func ourInits(t *testing.T) (inits []string) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Error(err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		for _, child := range bytes.Fields(children) {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%s/cmdline", child))
			inits = append(inits, fmt.Sprintf("%s %q", child, name))
		}
	}
	return inits
}
