package guest

import "unsafe"

// hostCall takes the addresses and the lengths of a function's name and of its arguments, and returns the length of its answer; that of an
// error's text is negative.
//
//go:wasmimport tapedeck call
func hostCall(name unsafe.Pointer, nameLength uint32, arguments unsafe.Pointer, length uint32) int32

// take copies the answer.
//
//go:wasmimport tapedeck take
func take(address unsafe.Pointer)

// call calls a function of the host, and returns its answer or the text of its error.
func call(name string, arguments []byte) (answer []byte, failed bool) {
	n := hostCall(unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), unsafe.Pointer(unsafe.SliceData(arguments)), uint32(len(arguments)))
	if failed = n < 0; failed {
		n = -n
	}
	answer = make([]byte, n)
	if n > 0 {
		take(unsafe.Pointer(unsafe.SliceData(answer)))
	}
	return answer, failed
}
