// Package host is what a program on a testbench may ask the bench for, whatever runs it: one table of functions with their names,
// parameters, words for people, and what each does. A Starlark script calls them as they stand there, a WebAssembly module with
// its arguments as JSON; an engine holds nothing of their logic.
//
// Values are those of JSON: nil, bool, int64, float64, string, []any and Object, whose members keep their order. Two more: json.Number
// is an integer beyond an int64, and []byte is a string of bytes that is not text, in JSON {"base64":"…"}.
package host
