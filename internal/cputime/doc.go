// Package cputime tells how long this process had a processor, for benchmarks that hold one thing against another: a clock also
// counts what other programs of the machine took meanwhile.
package cputime
