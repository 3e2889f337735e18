// Package wasi compiles programs in C and Rust with Debian's compilers, and runs and replays them as modules on a testbench.
//
// They are the examples that docs/reference/wasi.md names. It needs clang, lld, wasi-libc and libclang-rt-dev-wasm32 for C, rustc and
// libstd-rust-dev-wasm32 for Rust (or a rustc with the target wasm32-wasip1); .ci/run installs them by name. Behind the build tag wasi:
//
//	go test -tags wasi ./integration/wasi
package wasi
