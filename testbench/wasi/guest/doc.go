// Package guest is what a Go program that runs as a module on a testbench calls beyond Go's own library: the functions of package host, with
// Go types. It is compiled into the module, with GOOS=wasip1 GOARCH=wasm; elsewhere it compiles too, and every call fails.
//
// Time, random numbers, files, arguments and the environment need nothing of it: packages time, crypto/rand, os and flag have what the bench
// gives.
package guest
