//go:build escape

package escape

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tlsName is a name that the outer TLS listener has a certificate for, which no recorder signed.
const tlsName = "pinned.example.com"

func (o *outside) listenTLS() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another CA"}, DNSNames: []string{tlsName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	o.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	o.TCP["tls"] = l.Addr().String()
	o.accept("tls", tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	return nil
}

// makeIPC makes a queue, a segment and a semaphore of System V, a POSIX queue and an object in /dev/shm.
func (o *outside) makeIPC() error {
	o.Key = int(time.Now().UnixNano()&0x3fffffff) | 1
	o.Queue = o.Token
	objects := []struct {
		make, control uintptr
		remove        func(id uintptr)
	}{
		{make: unix.SYS_SHMGET, control: unix.SYS_SHMCTL},
		{make: unix.SYS_SEMGET, control: unix.SYS_SEMCTL},
		{make: unix.SYS_MSGGET, control: unix.SYS_MSGCTL},
	}
	for _, s := range objects {
		args := [3]uintptr{uintptr(o.Key), 1, unix.IPC_CREAT | 0o666}
		if s.make == unix.SYS_MSGGET {
			args[1] = args[2]
		}
		id, _, errno := unix.Syscall(s.make, args[0], args[1], args[2])
		if errno != 0 {
			return fmt.Errorf("making a System V object: %w", errno)
		}
		o.cleanup(func() {
			if s.control == unix.SYS_SEMCTL {
				unix.Syscall6(s.control, id, 0, unix.IPC_RMID, 0, 0, 0)
				return
			}
			unix.Syscall(s.control, id, unix.IPC_RMID, 0)
		})
	}
	if err := openQueue(o.Queue, unix.O_CREAT|unix.O_RDWR); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("making a POSIX queue: %w", err)
	}
	o.cleanup(func() { unlinkQueue(o.Queue) })
	shm := filepath.Join("/dev/shm", o.Token)
	o.cleanup(func() { os.Remove(shm) })
	return errors.Join(os.WriteFile(shm, []byte(o.Token), 0o666), os.Chmod(shm, 0o666))
}

func openQueue(name string, flags uintptr) error {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), flags, 0o666, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func unlinkQueue(name string) {
	if p, err := unix.BytePtrFromString(name); err == nil {
		unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(p)), 0, 0)
	}
}

// makePrivileged makes what only root can: programs that give privileges to who runs them, and a device.
func (o *outside) makePrivileged() error {
	if os.Geteuid() != 0 {
		return nil
	}
	o.Setuid, o.Setcap = filepath.Join(o.Elsewhere, "setuid"), filepath.Join(o.Elsewhere, "setcap")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	const dac = 1 << unix.CAP_DAC_OVERRIDE
	capability := []byte{1, 0, 0, 2, dac, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // struct vfs_cap_data, effective, revision 2
	err = errors.Join(
		os.WriteFile(o.Setuid, self, 0o755), os.Chmod(o.Setuid, 0o755|os.ModeSetuid|os.ModeSetgid),
		os.WriteFile(o.Setcap, self, 0o755), unix.Setxattr(o.Setcap, "security.capability", capability, 0))
	if err != nil {
		return err
	}
	o.Device = filepath.Join(o.Home, "null")
	return errors.Join(unix.Mknod(o.Device, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))), os.Chmod(o.Device, 0o666))
}

// makeCgroup makes a group for the recorder that its user owns, as a login session's is.
func (o *outside) makeCgroup() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[2] != "cgroup2" || !strings.HasPrefix(f[3], "rw") {
			continue
		}
		dir := filepath.Join(f[1], o.Token)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil // a system that lets nobody make one
		}
		o.cleanup(func() { removeCgroup(dir) })
		o.Cgroup = dir
		for _, name := range []string{"", "cgroup.procs", "cgroup.freeze", "cgroup.threads", "cgroup.subtree_control"} {
			if err := o.own(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// removeCgroup waits for the last process in it to be gone.
func removeCgroup(dir string) {
	for range 100 {
		if unix.Rmdir(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// runVictim waits to be killed, and prints every signal that it gets.
func runVictim() error {
	got := make(chan os.Signal, 100)
	signal.Notify(got)
	fmt.Println("ready")
	for s := range got {
		if s != syscall.SIGURG { // Go's own
			fmt.Println(s)
		}
	}
	return nil
}

// scan calls f with each line of r.
func scan(r io.Reader, f func(line string)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f(lines.Text())
	}
}
