package matching

import "sync"

// arrivals says which bodies have arrived somewhere. The zero value is ready.
type arrivals struct {
	mu     sync.Mutex
	bodies map[string]*arrival
}

type arrival struct {
	came chan struct{} // closed at the first one
	once sync.Once
}

func (a *arrivals) of(body string) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bodies == nil {
		a.bodies = make(map[string]*arrival)
	}
	if a.bodies[body] == nil {
		a.bodies[body] = &arrival{came: make(chan struct{})}
	}
	return a.bodies[body]
}

// note says that a body is there.
func (a *arrivals) note(body string) {
	at := a.of(body)
	at.once.Do(func() { close(at.came) })
}

// wait returns a channel that is closed once the body is there.
func (a *arrivals) wait(body string) <-chan struct{} { return a.of(body).came }
