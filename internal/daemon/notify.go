package daemon

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"
)

// notifier tells the service manager how the daemon is (sd_notify(3)): READY=1, STOPPING=1, and WATCHDOG=1 as often as asked.
// Without NOTIFY_SOCKET it does nothing.
type notifier struct {
	socket   string
	watchdog time.Duration // the manager's patience; 0 is endless
}

func newNotifier(getenv func(string) string) notifier {
	n := notifier{socket: getenv("NOTIFY_SOCKET")}
	pid := getenv("WATCHDOG_PID")
	if pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return n
	}
	if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

// tell sends one state; a manager that cannot be reached is nobody's trouble here.
func (n notifier) tell(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", n.socket)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}

// watch sends WATCHDOG=1 at half the manager's patience until ctx ends, as long as the daemon is healthy: one that is not is
// restarted by its manager.
func (n notifier) watch(ctx context.Context, healthy func() bool) {
	if n.socket == "" || n.watchdog <= 0 {
		return
	}
	tick := time.NewTicker(n.watchdog / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if healthy() {
				n.tell("WATCHDOG=1")
			}
		}
	}
}
