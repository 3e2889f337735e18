package guest

import "unsafe"

// Each function of the host takes the address and the length of its arguments, and returns the length of its answer; that of an error's
// text is negative. take copies the answer.

//go:wasmimport tapedeck take
func take(address unsafe.Pointer)

//go:wasmimport tapedeck clock.now_ms
func clockNowMS(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck clock.monotonic_ms
func clockMonotonicMS(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck clock.sleep
func clockSleep(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck clock.advance
func clockAdvance(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck llm.complete
func llmComplete(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck fs.read
func fsRead(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck fs.write
func fsWrite(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck fs.delete
func fsDelete(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck fs.list
func fsList(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck fs.exists
func fsExists(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck fs.diff
func fsDiff(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck process.run
func processRun(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck mcp.call
func mcpCall(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck http.get
func httpGet(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck http.post
func httpPost(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck random.int
func randomInt(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck random.bytes
func randomBytes(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck env.get
func envGet(arguments unsafe.Pointer, length uint32) int32

//go:wasmimport tapedeck log
func logLine(arguments unsafe.Pointer, length uint32) int32

var functions = map[string]func(unsafe.Pointer, uint32) int32{
	"clock.now_ms": clockNowMS, "clock.monotonic_ms": clockMonotonicMS, "clock.sleep": clockSleep, "clock.advance": clockAdvance,
	"llm.complete": llmComplete,
	"fs.read":      fsRead, "fs.write": fsWrite, "fs.delete": fsDelete, "fs.list": fsList, "fs.exists": fsExists, "fs.diff": fsDiff,
	"process.run": processRun, "mcp.call": mcpCall, "http.get": httpGet, "http.post": httpPost,
	"random.int": randomInt, "random.bytes": randomBytes, "env.get": envGet, "log": logLine,
}

// call calls a function of the host, and returns its answer or the text of its error.
func call(name string, arguments []byte) (answer []byte, failed bool) {
	f := functions[name]
	if f == nil {
		return []byte(name + ": no such function of the host"), true
	}
	n := f(unsafe.Pointer(unsafe.SliceData(arguments)), uint32(len(arguments)))
	if failed = n < 0; failed {
		n = -n
	}
	answer = make([]byte, n)
	if n > 0 {
		take(unsafe.Pointer(unsafe.SliceData(answer)))
	}
	return answer, failed
}
