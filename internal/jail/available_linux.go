package jail

import (
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/stage"
)

// Available tells, by trying it once a process, whether namespaces and a fresh /proc can be had: what most often cannot.
// The error is an *UnavailableError or ErrNotEntered. Start may still find that something else is missing.
func Available() error {
	if !stage.Entered.Load() {
		return ErrNotEntered
	}
	return available()
}

var available = sync.OnceValue(func() error {
	if !filter.Known() {
		return errProcessor
	}
	var files inherited
	defer files.close()
	j := newJail(nil)
	defer j.closeSockets()
	j.ctl = files.control()
	files.memfile("init", &stage.InitSpec{Trial: true})
	if files.err != nil {
		return files.err
	}
	if err := j.start(files.list); err != nil {
		return err
	}
	_, _, err := j.ctl.Expect(stage.MsgReady)
	j.kill()
	j.tasks.Wait()
	if err != nil {
		return j.explain(err)
	}
	return nil
})
