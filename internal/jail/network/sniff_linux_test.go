package network

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
)

func TestRefusalOf(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr
	for _, tt := range []struct {
		name, packet string
		want         connect.Refusal
		ok           bool
	}{
		{"IPv4 reset", "45000028000040004006000009090909 09090909 0016d1e2 00000000 00000001 5014000000000000",
			connect.Refusal{Proto: "tcp", Addr: addr("9.9.9.9"), Port: 22}, true},
		{"IPv4 port unreachable", "45c0003900000000400100000808080808080808 0303000000000000" +
			"4500001d0000400040110000080808080808080a c35001bb0009000078", connect.Refusal{Proto: "udp", Addr: addr("8.8.8.10"), Port: 443, From: 50000}, true},
		{"answer of the DNS to nobody", "45c0003900000000400100007f0000017f000001 0303000000000000" +
			"4500001d00004000401100007f0000017f000001 0035c3500009000078", connect.Refusal{}, false},
		{"IPv4 multicast", "4500001d00004000011100007f000001e00000fb 14e914e9000900006d", connect.Refusal{Proto: "udp", Addr: addr("224.0.0.251"), Port: 5353, From: 5353}, true},
		{"options cut off", "4f000028000040004006000009090909 09090909", connect.Refusal{}, false},
		{"no header", "45", connect.Refusal{}, false},
		{"nothing", "", connect.Refusal{}, false},
	} {
		got, ok := refusalOf(unhex(t, tt.packet))
		if ok != tt.ok || !cmp.Equal(got, tt.want, cmpopts.IgnoreFields(connect.Refusal{}, "Reason"), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
			t.Errorf("%s: %+v %v, want %+v %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(string(slices.DeleteFunc([]byte(s), func(c byte) bool { return c == ' ' })))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzRefusalOf(f *testing.F) {
	f.Add(unhex(f, "45c0003900000000400100000808080808080808030300000000000045000000"))
	f.Add(make([]byte, 60))
	f.Fuzz(func(t *testing.T, p []byte) {
		if r, ok := refusalOf(p); ok && !r.Addr.IsValid() {
			t.Errorf("refusal without address: %+v", r)
		}
	})
}
