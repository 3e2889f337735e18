// Package load puts a crowd of sessions on a real daemon, a process of its own, and says how it held: turns that were
// acknowledged, how long that took, who was held up by whom, what a kill left, what a soak leaves behind.
//
//	go test -v -tags load ./integration/load                                                     every scenario, in its short form
//	TAPEDECK_LONG=1 go test -v -tags load -timeout 1h ./integration/load -run TestLoad/turns     one, as long as docs/daemon.md quotes it
//
// Each scenario is measured beside its limit on the same machine in the same minute: the segment log alone, a file a session,
// the same daemon without the crowd. The figures are logged; what must hold whatever the machine (no acknowledged turn is lost,
// nothing is left behind) fails the scenario. Linux only.
package load
