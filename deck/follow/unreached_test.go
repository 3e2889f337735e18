package follow_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestUnreachedBy(t *testing.T) {
	forbidden := func(url, addr string) tape.Kind {
		return &tape.HTTPExchange{Exchange: tape.Exchange{URL: url, Error: addr + " is one of this host, " + network.OnlyNamed}}
	}
	for name, c := range map[string]struct {
		kind tape.Kind
		want string
	}{
		"loopback":         {&tape.NetRefused{Addr: "127.0.0.1", Port: 1234, Reason: jail.NoListener}, "127.0.0.1:1234=http://127.0.0.1:1234"},
		"IPv6":             {&tape.NetRefused{Addr: "::1", Port: 1234, Reason: jail.NoListener}, "'[::1]:1234=http://[::1]:1234'"},
		"elsewhere":        {&tape.NetRefused{Addr: "192.0.2.1", Port: 1234, Reason: jail.NoListener}, ""},
		"no HTTP":          {&tape.NetRefused{Addr: "127.0.0.1", Port: 11434, Reason: "neither HTTP nor TLS"}, ""},
		"not sent on":      {forbidden("http://localhost:11434/api/chat", "127.0.0.1:11434"), "localhost:11434=http://127.0.0.1:11434"},
		"TLS":              {forbidden("https://localhost/", "127.0.0.1:443"), "localhost:443=https://127.0.0.1:443"},
		"a host's own":     {forbidden("http://box:11434/", "192.168.1.5:11434"), "box:11434=http://192.168.1.5:11434"},
		"unspecified":      {forbidden("http://0.0.0.0:11434/", "0.0.0.0:11434"), "0.0.0.0:11434=http://127.0.0.1:11434"},
		"link-local":       {forbidden("http://169.254.169.254/", "169.254.169.254:80"), ""},
		"down, but named":  {&tape.HTTPExchange{Exchange: tape.Exchange{URL: "http://localhost:1234/", Error: "connection refused"}}, ""},
		"answered":         {&tape.LLMCall{Exchange: tape.Exchange{URL: "http://localhost:1234/", Status: 200}}, ""},
		"of another kind":  {new(tape.ClockSleep), ""},
		"not of this form": {forbidden("http://localhost:1234/", "it"), ""},
	} {
		got := ""
		if u := follow.UnreachedBy(c.kind); u != nil {
			got = u.Upstream()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
