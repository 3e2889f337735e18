package filter

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// verdictOf runs the program of rules over a call. The machine of package bpf reads words as a network does, so they are written so.
func verdictOf(t *testing.T, rules []Rule, nr uint32, args ...uint64) Verdict {
	t.Helper()
	vm, err := bpf.NewVM(Assemble(rules, Allow))
	if err != nil {
		t.Fatal(err)
	}
	var data [dataArgs + 6*8]byte
	binary.BigEndian.PutUint32(data[dataNr:], nr)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[dataArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[dataArgs+8*i+4:], uint32(a>>32))
	}
	v, err := vm.Run(data[:])
	if err != nil {
		t.Fatal(err)
	}
	return Verdict(uint32(v))
}

// TestRules sees each kind of condition hold and fail, and calls left to the rules behind.
func TestRules(t *testing.T) {
	t.Parallel()
	rules := []Rule{
		{1, [][]Condition{{Equal(0, 3, 5)}}, Notify, Next},
		{1, [][]Condition{{Bits(1, 6), NoBits(1, 1)}, {NotNull(2)}}, Errno(unix.EPERM), Errno(unix.ENOSYS)},
		{2, [][]Condition{{NotEqual(0, 0, 100), Below(0, 1000)}}, Errno(unix.EPERM), Next},
		{2, [][]Condition{{Masked(1, 0xf, 2, 5)}}, Notify, Allow},
		{Nr: 4, Then: Notify},
	}
	for _, tt := range []struct {
		nr   uint32
		args []uint64
		want Verdict
	}{
		{1, []uint64{3}, Notify}, {1, []uint64{5}, Notify}, {1, []uint64{4}, Errno(unix.ENOSYS)},
		{1, []uint64{0, 4}, Errno(unix.EPERM)}, {1, []uint64{0, 5}, Errno(unix.ENOSYS)}, {1, []uint64{0, 0}, Errno(unix.ENOSYS)},
		{1, []uint64{0, 0, 1}, Errno(unix.EPERM)}, {1, []uint64{0, 0, 1 << 40}, Errno(unix.EPERM)},
		{2, []uint64{7}, Errno(unix.EPERM)}, {2, []uint64{100}, Allow}, {2, []uint64{0, 0x12}, Notify}, {2, []uint64{1000, 0x85}, Notify},
		{2, []uint64{1000, 0x86}, Allow}, {4, nil, Notify}, {5, nil, Allow},
	} {
		if got := verdictOf(t, rules, tt.nr, tt.args...); got != tt.want {
			t.Errorf("call %d %v: %#x, want %#x", tt.nr, tt.args, got, tt.want)
		}
	}
}

// TestAlways holds what confines to what ordinary programs do.
func TestAlways(t *testing.T) {
	t.Parallel()
	const closed = unix.SOCK_CLOEXEC
	for name, tt := range map[string]struct {
		nr   uint32
		args []uint64
		want Verdict
	}{
		"TCP":                   {unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | closed, unix.IPPROTO_TCP}, Allow},
		"multipath TCP":         {unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, Allow},
		"UDP":                   {unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM}, Allow},
		"SCTP":                  {unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, Notify},
		"ping":                  {unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, Notify},
		"raw":                   {unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW}, Notify},
		"vsock":                 {unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, Notify},
		"netlink":               {unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, Allow},
		"Unix stream":           {unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, Allow},
		"Unix datagrams":        {unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, Errno(unix.ESOCKTNOSUPPORT)},
		"pair":                  {unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | closed}, Allow},
		"pair of datagrams":     {unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, Notify},
		"pair of another":       {unix.SYS_SOCKETPAIR, []uint64{unix.AF_INET, unix.SOCK_STREAM}, Errno(unix.EOPNOTSUPP)},
		"connect":               {unix.SYS_CONNECT, nil, Notify},
		"keys":                  {unix.SYS_KEYCTL, nil, Errno(unix.EPERM)},
		"io_uring":              {unix.SYS_IO_URING_SETUP, nil, Errno(unix.ENOSYS)},
		"limits of the init":    {unix.SYS_PRLIMIT64, []uint64{1}, Errno(unix.EPERM)},
		"limits of its threads": {unix.SYS_PRLIMIT64, []uint64{ChildPID - 1}, Errno(unix.EPERM)},
		"its own limits":        {unix.SYS_PRLIMIT64, []uint64{0}, Allow},
		"limits of a child":     {unix.SYS_PRLIMIT64, []uint64{ChildPID}, Allow},
		"userfaultfd":           {unix.SYS_USERFAULTFD, []uint64{unix.O_CLOEXEC}, Errno(unix.EPERM)},
		"its user mode":         {unix.SYS_USERFAULTFD, []uint64{uffdUserModeOnly}, Allow},
		"anything else":         {unix.SYS_GETPID, nil, Allow},
	} {
		if got := verdictOf(t, Always(), tt.nr, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", name, got, tt.want)
		}
	}
}
