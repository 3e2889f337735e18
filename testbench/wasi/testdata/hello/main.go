// Command hello is a program that knows nothing of a testbench.
package main

import "fmt"

func main() { fmt.Println("hello") }
