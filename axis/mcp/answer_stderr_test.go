package mcp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// What two servers write to one stderr comes in the recorded order, however early one of them is on the replay.
func TestStderrOfTwoServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemoryTape(t)
		log := mcp.NewLog(m.rec, nil, nil, nil)
		a, b := log.Begin(opened()), log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "other"})
		line := func(c *mcp.Conversation, from mcp.Side, text string) {
			if err := c.Line(from, []byte(said(text)+"\n"), 0); err != nil {
				t.Error(err)
			}
		}
		stderr := func(c *mcp.Conversation, text string) {
			if err := c.Stderr([]byte(text)); err != nil {
				t.Error(err)
			}
		}
		for _, c := range []*mcp.Conversation{a, b} {
			line(c, mcp.Client, initialize)
			line(c, mcp.Server, initResult)
			line(c, mcp.Client, initialized)
		}
		line(a, mcp.Client, callTool(2, "t", `{}`))
		stderr(a, "one\n")
		stderr(b, "two\n")
		stderr(a, "three\n")
		line(a, mcp.Server, result(2, "A"))
		for _, c := range []*mcp.Conversation{a, b} {
			if err := c.End(mcp.Ended{By: mcp.Client, Exited: true}); err != nil {
				t.Error(err)
			}
		}

		var errs syncBuffer
		book := m.book(nil)
		other, why := book.Spawn("other", nil)
		if other == nil {
			t.Fatal(why)
		}
		first, second := converse(t, spawned(t, book), mcp.ServeOptions{Err: &errs}), converse(t, other, mcp.ServeOptions{Err: &errs})
		first.opens()
		second.opens()
		synctest.Wait()
		first.say(said(callTool(7, "t", `{}`)))
		first.hears(said(result(7, "A")))
		first.end()
		second.end()
		if got := errs.String(); got != "one\ntwo\nthree\n" {
			t.Errorf("stderr %q", got)
		}
	})
}

// What a server wrote to its stderr before another one was asked comes on a replay before anybody asks that: a client may wait for it.
func TestStderrBeforeAnotherIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemoryTape(t)
		log := mcp.NewLog(m.rec, nil, nil, nil)
		a, b := log.Begin(opened()), log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "other"})
		line := func(c *mcp.Conversation, from mcp.Side, text string) {
			if err := c.Line(from, []byte(said(text)+"\n"), 0); err != nil {
				t.Error(err)
			}
		}
		for _, c := range []*mcp.Conversation{a, b} {
			line(c, mcp.Client, initialize)
			line(c, mcp.Server, initResult)
			line(c, mcp.Client, initialized)
		}
		if err := a.Stderr([]byte("ready\n")); err != nil {
			t.Error(err)
		}
		line(b, mcp.Client, callTool(2, "t", `{}`))
		line(b, mcp.Server, result(2, "B"))
		line(a, mcp.Client, callTool(2, "t", `{}`))
		line(a, mcp.Server, result(2, "A"))
		for _, c := range []*mcp.Conversation{a, b} {
			if err := c.End(mcp.Ended{By: mcp.Client, Exited: true}); err != nil {
				t.Error(err)
			}
		}

		book := m.book(nil)
		other, why := book.Spawn("other", nil)
		if other == nil {
			t.Fatal(why)
		}
		var errs syncBuffer
		first, second := converse(t, spawned(t, book), mcp.ServeOptions{Err: &errs}), converse(t, other, mcp.ServeOptions{Err: &errs})
		first.opens()
		second.opens()
		time.Sleep(time.Second) // which takes no time here, and is less than what is late holds up others
		if got := errs.String(); got != "ready\n" {
			t.Errorf("stderr %q before the other is asked", got)
		}
		second.say(said(callTool(7, "t", `{}`)))
		second.hears(said(result(7, "B")))
		first.say(said(callTool(7, "t", `{}`)))
		first.hears(said(result(7, "A")))
		first.end()
		second.end()
	})
}

// What servers wrote to their stderr before a client initialized them waits for no answer of another one: a client may wait for all of
// that before it asks any.
func TestStderrOfServersThatBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemoryTape(t)
		log := mcp.NewLog(m.rec, nil, nil, nil)
		line := func(c *mcp.Conversation, from mcp.Side, text string) {
			if err := c.Line(from, []byte(said(text)+"\n"), 0); err != nil {
				t.Error(err)
			}
		}
		var all []*mcp.Conversation
		for _, o := range []*mcp.Opened{opened(), {Transport: mcp.Stdio, Program: "other"}} {
			c := log.Begin(o)
			all = append(all, c)
			if err := c.Stderr([]byte("ready\n")); err != nil {
				t.Error(err)
			}
			line(c, mcp.Client, initialize)
			line(c, mcp.Server, initResult)
			line(c, mcp.Client, initialized)
			time.Sleep(time.Second) // of synctest
		}
		for _, c := range all {
			if err := c.End(mcp.Ended{By: mcp.Client, Exited: true}); err != nil {
				t.Error(err)
			}
		}
		var errs syncBuffer
		book := m.book(nil)
		other, why := book.Spawn("other", nil)
		if other == nil {
			t.Fatal(why)
		}
		first, second := converse(t, spawned(t, book), mcp.ServeOptions{Err: &errs}), converse(t, other, mcp.ServeOptions{Err: &errs})
		synctest.Wait()
		if got := errs.String(); got != "ready\nready\n" {
			t.Errorf("stderr %q before either is initialized", got)
		}
		first.opens()
		second.opens()
		first.end()
		second.end()
	})
}
