//go:build !wasip1

package guest

// call fails: there is no host.
func call(name string, _ []byte) (answer []byte, failed bool) {
	return []byte(name + ": this program is no module on a testbench: compile it with GOOS=wasip1 GOARCH=wasm and run it with tapedeck script run"), true
}
