package deck

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bounds of what one connection is looked for in.
const (
	maxSockets   = 4 << 20 // bytes of a table of sockets
	maxProcesses = 1024    // of the trees of all servers
	maxThreads   = 256     // of each of them
	maxFiles     = 4096    // descriptors of each of them
)

// asks returns the number of the conversation of the server whose process has the socket with this address inside; 0 where it is the
// program's, and where it cannot be found out. A socket that a server has from those above it is theirs.
func (s *servers) asks(remote net.Addr) uint64 {
	addr, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return 0
	}
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	held := make(map[int]bool) // asked before, by process
	for _, root := range s.talking() {
		link := socketAt(root, addr)
		if link == "" {
			continue
		}
		holds := func(pid int) bool {
			has, known := held[pid]
			if !known {
				has = holdsFile(pid, link)
				held[pid] = has
			}
			return has
		}
		for _, pid := range treeOf(root) {
			if holds(pid) {
				return s.above(pid, holds)
			}
		}
	}
	return 0
}

// talking lists the processes that hold a conversation.
func (s *servers) talking() (roots []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid, by := range s.roots {
		if s.all[by-1].conversation != 0 {
			roots = append(roots, pid)
		}
	}
	return roots
}

// above is the conversation of the topmost process that holds what pid does, of pid and those that it comes from.
func (s *servers) above(pid int, holds func(pid int) bool) uint64 {
	top := pid
	for range maxClimb {
		_, parent := lineage(pid)
		if parent <= 1 {
			break
		}
		if pid = parent; holds(pid) {
			top = pid
		}
	}
	return s.within(top)
}

// within is the conversation of the server that a process is, or comes from; 0 for none.
func (s *servers) within(pid int) uint64 {
	s.mu.Lock()
	by := s.climb(pid)
	s.mu.Unlock()
	return s.conversation(by)
}

// socketAt is the link of the TCP socket whose own address is addr, where the process pid is; "" for none, and where there are several.
func socketAt(pid int, addr netip.AddrPort) (link string) {
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(io.LimitReader(f, maxSockets))
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[9] == "0" || !isAddr(fields[1], addr) {
				continue
			}
			if link != "" {
				f.Close()
				return ""
			}
			link = "socket:[" + fields[9] + "]"
		}
		f.Close()
	}
	return link
}

// isAddr reports whether a table of sockets means addr by text: the address in hexadecimal, in words of the machine's byte order, and
// the port.
func isAddr(text string, addr netip.AddrPort) bool {
	host, port, _ := strings.Cut(text, ":")
	if n, err := strconv.ParseUint(port, 16, 16); err != nil || uint16(n) != addr.Port() {
		return false
	}
	var b []byte
	for ; len(host) >= 8; host = host[8:] {
		word, err := strconv.ParseUint(host[:8], 16, 32)
		if err != nil {
			return false
		}
		b = binary.NativeEndian.AppendUint32(b, uint32(word))
	}
	a, ok := netip.AddrFromSlice(b)
	return ok && a.Unmap() == addr.Addr()
}

// treeOf lists a process and those that come from it, as far as they have not lost their parents.
func treeOf(root int) []int {
	all := []int{root}
	for i := 0; i < len(all) && len(all) < maxProcesses; i++ {
		for _, task := range namesIn(fmt.Sprintf("/proc/%d/task", all[i]), maxThreads) {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", all[i], task))
			if err != nil {
				continue
			}
			for _, child := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(child); err == nil && len(all) < maxProcesses {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// holdsFile reports whether a process has a descriptor with this link.
func holdsFile(pid int, link string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	for _, fd := range namesIn(dir, maxFiles) {
		if to, err := os.Readlink(filepath.Join(dir, fd)); err == nil && to == link {
			return true
		}
	}
	return false
}

// namesIn lists the first names of a directory; none where it cannot be read.
func namesIn(dir string, most int) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(most)
	return names
}
