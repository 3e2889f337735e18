package mcp

import (
	"context"
	"crypto/rand"
	"sync"
)

// maxSessions bounds how many clients there are at once.
const maxSessions = 10000

// sessions are the clients over HTTP that tell themselves apart.
type sessions struct {
	ctx context.Context
	s   *Served
	o   *ServeOptions

	mu  sync.Mutex
	all map[string]*session // by id; nil when ctx is done
}

// A session is a client over HTTP.
type session struct {
	*visit
	id      string
	streams *streams // nil for clients without a session
	leave   context.CancelFunc
}

func newSessions(ctx context.Context, s *Served, o *ServeOptions) *sessions {
	ss := &sessions{ctx: ctx, s: s, o: o, all: make(map[string]*session)}
	context.AfterFunc(ctx, ss.close)
	return ss
}

// open lets a client in; nil where there are too many.
func (ss *sessions) open() *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.all == nil || len(ss.all) >= maxSessions {
		return nil
	}
	gone, leave := context.WithCancel(ss.ctx)
	v := &session{visit: newVisit(gone, ss.s, ss.o), id: rand.Text(), streams: newStreams(), leave: leave}
	v.unasked = v.streams.own.put
	ss.all[v.id] = v
	return v
}

// get is the session of an id; nil for none.
func (ss *sessions) get(id string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.all[id]
}

// drop ends a session.
func (ss *sessions) drop(id string) {
	ss.mu.Lock()
	v := ss.all[id]
	delete(ss.all, id)
	ss.mu.Unlock()
	if v != nil {
		v.close()
	}
}

func (ss *sessions) close() {
	ss.mu.Lock()
	all := ss.all
	ss.all = nil
	ss.mu.Unlock()
	for _, v := range all {
		v.close()
	}
}

func (v *session) close() {
	v.leave()
	v.end()
}
