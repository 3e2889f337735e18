package testbench_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// fakeT is a test whose failures are looked at.
type fakeT struct {
	testing.TB
	mu       sync.Mutex
	said     []string
	failed   bool
	fatal    bool
	cleanups []func()
}

func newFakeT(t *testing.T) *fakeT { return &fakeT{TB: t} }

func (f *fakeT) Helper()          {}
func (f *fakeT) Name() string     { return "TestAgent" }
func (f *fakeT) Cleanup(g func()) { f.cleanups = append(f.cleanups, g) }
func (f *fakeT) Failed() bool     { return f.failed }
func (f *fakeT) Skipped() bool    { return false }

func (f *fakeT) Logf(format string, args ...any) {}
func (f *fakeT) Error(args ...any)               { f.Errorf("%s", fmt.Sprint(args...)) }
func (f *fakeT) Fail() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = true
}
func (f *fakeT) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said, f.failed = append(f.said, fmt.Sprintf(format, args...)), true
}
func (f *fakeT) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	f.fatal = true
	panic(f)
}

// end runs the cleanups and returns what the test said.
func (f *fakeT) end() string {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
	f.cleanups = nil
	return strings.Join(f.said, "\n")
}

// run runs a body that may end in Fatalf.
func (f *fakeT) run(body func()) {
	defer func() {
		if r := recover(); r != nil && r != f {
			panic(r)
		}
	}()
	body()
}
