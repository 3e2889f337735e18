package jail

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"golang.org/x/sys/unix"
)

func TestListeners(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "dial", "tcp", "1.2.3.4:443", "tcp", "[2001:db8::7]:80", "tcp", "5.6.7.8:11434", "tcp", "127.0.0.1:80")
	c.Ports = []uint16{11434, 443}
	r := run(t, c, func(j *Jail) {
		if n := len(j.Listeners()); n != 3 {
			t.Fatalf("%d listeners", n)
		}
		for _, l := range j.Listeners() {
			go accept(l)
		}
	})
	r.want(t, "1.2.3.4:443 reached 1.2.3.4:443\n[2001:db8::7]:80 reached [2001:db8::7]:80\n"+
		"5.6.7.8:11434 reached 5.6.7.8:11434\n127.0.0.1:80 reached 127.0.0.1:80\n")
	if len(r.refusals) != 0 {
		t.Errorf("refused: %+v", r.refusals)
	}
}

func TestHostLoopback(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Log("not listening here:", err)
			continue
		}
		defer l.Close()
		reached := l.Addr().String()
		r := run(t, helperConfig(t, "dial", "tcp", reached), nil)
		r.want(t, reached+" failed\n")
		r.wantRefused(t, "tcp "+reached)
	}
}

// wantRefused fails the test unless these were refused, each "proto addr:port" or "proto" alone, in any order.
func (r result) wantRefused(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for _, x := range r.refusals {
		s := x.Proto
		if x.Addr.IsValid() {
			s += " " + netip.AddrPortFrom(x.Addr, x.Port).String()
		}
		got = append(got, s)
	}
	slices.Sort(got)
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

func TestRefusedPorts(t *testing.T) {
	t.Parallel()
	r := run(t, helperConfig(t, "dial", "tcp", "9.9.9.9:22", "tcp", "[2001:db8::9]:25",
		"udp", "8.8.8.8:443", "udp", "[2001:db8::8]:123", "udp", "224.0.0.251:5353", "udp", "255.255.255.255:67"), nil)
	r.wantRefused(t, "tcp 9.9.9.9:22", "tcp [2001:db8::9]:25", "udp 8.8.8.8:443", "udp [2001:db8::8]:123", "udp 224.0.0.251:5353", "udp 255.255.255.255:67")
}

func TestSocketsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		family, kind, protocol int
		err, refused           string
	}{
		{unix.AF_INET, unix.SOCK_STREAM, 0, "<nil>", ""},
		{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP, "<nil>", ""},
		{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, unix.IPPROTO_UDP, "<nil>", ""},
		{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, "<nil>", ""},
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, "<nil>", ""},
		{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, "EPERM", "inet raw"},
		{unix.AF_INET6, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.IPPROTO_RAW, "EPERM", "inet6 raw"},
		{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, "EPERM", "inet dgram protocol 1"},
		{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, "EPERM", "inet stream protocol 132"},
		{unix.AF_PACKET, unix.SOCK_RAW, 0, "EPERM", "packet raw"},
		{unix.AF_VSOCK, unix.SOCK_STREAM, 0, "EAFNOSUPPORT", "vsock stream"},
		{unix.AF_ALG, unix.SOCK_SEQPACKET, 0, "EAFNOSUPPORT", "alg seqpacket"},
		{99, 77, 0, "EAFNOSUPPORT", "family 99 type 13"},
	}
	var args, refused []string
	var want strings.Builder
	for _, tt := range tests {
		args = append(args, strconv.Itoa(tt.family), strconv.Itoa(tt.kind), strconv.Itoa(tt.protocol))
		fmt.Fprintln(&want, tt.err)
		if tt.refused != "" {
			refused = append(refused, tt.refused)
		}
	}
	r := run(t, helperConfig(t, "socket", args...), nil)
	r.want(t, want.String())
	r.wantRefused(t, refused...)
}

func TestManyNotifications(t *testing.T) {
	t.Parallel()
	var args []string
	for range 3000 {
		args = append(args, strconv.Itoa(unix.AF_VSOCK), strconv.Itoa(unix.SOCK_STREAM), "0")
	}
	r := run(t, helperConfig(t, "socket", args...), nil)
	r.want(t, strings.Repeat("EAFNOSUPPORT\n", 3000))
	if n := len(r.refusals); n != refusalBuffer {
		t.Errorf("%d refusals kept, want %d: the rest is counted as lost", n, refusalBuffer)
	}
}

func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	calls := []struct {
		nr  int
		err string
	}{
		{unix.SYS_IO_URING_SETUP, "ENOSYS"}, {unix.SYS_KEYCTL, "EPERM"}, {unix.SYS_BPF, "EPERM"},
		{unix.SYS_PERF_EVENT_OPEN, "EPERM"}, {unix.SYS_OPEN_BY_HANDLE_AT, "EPERM"}, {unix.SYS_GETPID, ""},
	}
	if filter.X32Bit != 0 {
		calls = append(calls, struct {
			nr  int
			err string
		}{unix.SYS_SOCKET | filter.X32Bit, "ENOSYS"})
	}
	var args []string
	want := ""
	for _, c := range calls {
		args = append(args, strconv.Itoa(c.nr))
		want += c.err + "\n"
	}
	run(t, helperConfig(t, "syscall", args...), nil).want(t, want)
}

// TestKernelLog: where dmesg_restrict is 0 everybody else may read it.
func TestKernelLog(t *testing.T) {
	t.Parallel()
	run(t, helperConfig(t, "klog"), nil).want(t, "EPERM\n")
}

func TestDNS(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "query", "127.0.0.1:53", "8.8.8.8:53", "[2001:db8::53]:53")
	r := run(t, c, func(j *Jail) {
		packets, stream := j.DNS()
		if stream == nil {
			t.Fatal("no DNS over TCP")
		}
		go func() {
			buf := make([]byte, 100)
			for {
				n, from, err := packets.ReadFrom(buf)
				if err != nil {
					return
				}
				packets.WriteTo(append(buf[:n], " answered"...), from)
			}
		}()
	})
	r.want(t, "127.0.0.1:53 query answered\n8.8.8.8:53 query answered\n[2001:db8::53]:53 query answered\n")
}
