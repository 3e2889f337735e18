package daemon

import "slices"

// identity is who a connection is. Its session guards it.
//
//	auth on   host token         host: reads everything, writes nothing
//	          token, agent_id    bound: that agent
//	          token              the agents under which it started runs on this connection
//	auth off  agent_id           bound: that agent, and those as which it started runs nevertheless
//	          nothing            what it started, once it started a run; before that it reads everything
type identity struct {
	authed  bool     // may call anything but session.auth
	open    bool     // auth is off
	host    bool     // came with the host token
	bound   string   // the agent it is, or ""
	started []string // the agents under which it started runs; at most Limits.Runs
}

// owns says whether runs of an agent are its own, to read and to write.
func (i *identity) owns(agent string) bool {
	return !i.host && agent != "" && (i.bound == agent || slices.Contains(i.started, agent))
}

// readsAll says whether it reads the runs of every agent.
func (i *identity) readsAll() bool {
	return i.host || i.open && i.bound == "" && len(i.started) == 0
}

func (i *identity) reads(agent string) bool { return i.readsAll() || i.owns(agent) }

// may says whether it may start a run as agent.
func (i *identity) may(agent string) bool {
	return !i.host && (i.open || i.bound == "" || i.bound == agent)
}

// start notes that it started a run as agent.
func (i *identity) start(agent string) {
	if i.bound != agent && !slices.Contains(i.started, agent) {
		i.started = append(i.started, agent)
	}
}
