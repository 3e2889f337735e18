package httptape

// TB is what New needs of a *testing.T, *testing.B or *testing.F.
type TB interface {
	Helper()
	Name() string
	Failed() bool
	Skipped() bool
	Cleanup(f func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// New opens the tape at path for a test, and closes it when the test and its subtests have ended. The test fails at once
// where the tape cannot be opened (see Open), and at its end with what Close returns: requests that are not on the tape, and
// recorded exchanges that nobody asked for.
//
// What a test recorded that failed or was skipped is not kept. Of such a test, what nobody asked for is no news.
func New(t TB, path string, opts *Options) *Transport {
	t.Helper()
	tr, err := open(path, opts, t.Name())
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(func() { tr.endTest(t) })
	return tr
}

// endTest closes t at the end of a test.
func (t *Transport) endTest(tb TB) {
	tb.Helper()
	if tb.Failed() || tb.Skipped() {
		if t.Recording() && t.Report().Recorded > 0 {
			tb.Logf("httptape: the test failed or was skipped: what it recorded is not kept, %s", t.untouched())
		}
		t.Discard()
		t.opts.AllowUnasked = true
	}
	if err := t.Close(); err != nil {
		tb.Errorf("%v", err)
	}
}
