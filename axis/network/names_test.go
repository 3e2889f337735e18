package network

import (
	"errors"
	"net/netip"
	"strconv"
	"testing"
)

func TestNames(t *testing.T) {
	var a, b Names
	seen := make(map[netip.Addr]string)
	for i := range 2000 {
		name := "host" + strconv.Itoa(i) + ".example.com"
		addr, err := a.Addr(name)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[addr]; ok {
			t.Fatalf("%s and %s share %s", name, other, addr)
		}
		seen[addr] = name
		if !synthetic.Contains(addr) || addr.Less(netip.MustParseAddr("198.18.1.0")) {
			t.Fatalf("%s got %s, outside the range", name, addr)
		}
		if got, ok := a.Name(netip.AddrFrom16(addr.As16())); !ok || got != name {
			t.Fatalf("%s is the address of %q, want %q", addr, got, name)
		}
	}
	for _, name := range []string{"api.example.com", "API.example.com.", "z.test"} {
		x, _ := a.Addr(name)
		y, _ := b.Addr(name)
		if x != y {
			t.Errorf("%s is %s in one run and %s in the next", name, x, y)
		}
	}
}

func TestNamesFull(t *testing.T) {
	var n Names
	for i := range maxNames {
		if _, err := n.Addr(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Addr("one-too-many"); !errors.Is(err, errNamesFull) {
		t.Errorf("got %v", err)
	}
	if _, err := n.Addr("0"); err != nil {
		t.Errorf("a known name: %v", err)
	}
}
