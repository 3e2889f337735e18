package jail

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The helper "calls" makes system calls exactly as it is told, one an argument, and prints the name of each one's error.
// A call is its fields, separated by callSep: the number, a name for the result or nothing, then the arguments, each led
// by a letter: s a string, in which {f} stands for the result of that name, n a number, f a result, h the flags and the
// resolve bits of an open_how, u the path of a sockaddr_un, with a leading @ an abstract one.
const callSep = "\x1f"

func call(nr uintptr, args ...any) string { return callAs("", nr, args...) }

// A fdOf is the result of an earlier call as an argument.
type fdOf string

// A how is a struct open_how.
type how struct{ flags, resolve uint64 }

// A sockAt is a struct sockaddr_un.
type sockAt string

func callAs(name string, nr uintptr, args ...any) string {
	fields := []string{strconv.Itoa(int(nr)), name}
	for _, a := range args {
		switch a := a.(type) {
		case string:
			fields = append(fields, "s"+a)
		case int:
			fields = append(fields, "n"+strconv.Itoa(a))
		case fdOf:
			fields = append(fields, "f"+string(a))
		case how:
			fields = append(fields, fmt.Sprintf("h%d,%d", a.flags, a.resolve))
		case sockAt:
			fields = append(fields, "u"+string(a))
		}
	}
	return strings.Join(fields, callSep)
}

func helperCalls(args []string) int {
	results := make(map[string]uintptr)
	runtime.LockOSThread()
	for _, a := range args {
		fields := strings.Split(a, callSep)
		nr, _ := strconv.Atoi(fields[0])
		var raw [6]uintptr
		var keep []any
		for i, f := range fields[2:] {
			var p any
			raw[i], p = rawArg(f, results)
			keep = append(keep, p)
		}
		r, _, errno := syscall.Syscall6(uintptr(nr), raw[0], raw[1], raw[2], raw[3], raw[4], raw[5])
		runtime.KeepAlive(keep)
		results[fields[1]] = r
		if errno == 0 {
			fmt.Println("ok")
		} else {
			fmt.Println(unix.ErrnoName(errno))
		}
	}
	return 0
}

// rawArg returns the argument, and what must stay where it is until the call is over.
func rawArg(field string, results map[string]uintptr) (uintptr, any) {
	text := field[1:]
	switch field[0] {
	case 'n':
		n, _ := strconv.Atoi(text)
		return uintptr(n), nil
	case 'f':
		return results[text], nil
	case 's':
		for name, r := range results {
			text = strings.ReplaceAll(text, "{"+name+"}", strconv.Itoa(int(r)))
		}
		b := append([]byte(text), 0)
		return uintptr(unsafe.Pointer(&b[0])), b
	case 'h':
		b := make([]byte, 24)
		flags, resolve, _ := strings.Cut(text, ",")
		n, _ := strconv.ParseUint(flags, 10, 64)
		binary.NativeEndian.PutUint64(b, n)
		if n&unix.O_CREAT != 0 {
			binary.NativeEndian.PutUint64(b[8:], 0o644)
		}
		n, _ = strconv.ParseUint(resolve, 10, 64)
		binary.NativeEndian.PutUint64(b[16:], n)
		return uintptr(unsafe.Pointer(&b[0])), b
	}
	b := make([]byte, unix.SizeofSockaddrUnix)
	binary.NativeEndian.PutUint16(b, unix.AF_UNIX)
	copy(b[2:], text)
	if text[0] == '@' {
		b[2] = 0
	}
	return uintptr(unsafe.Pointer(&b[0])), b
}

// callsConfig runs calls inside, in dir, which the program may change.
func callsConfig(t testing.TB, dir string, calls ...string) *Config {
	c := helperConfig(t, "calls", calls...)
	c.Dir, c.Writable = dir, []string{dir}
	return c
}
