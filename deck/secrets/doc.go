// Package secrets tells a scrubber what is secret before a program starts: in its arguments, in the environment, by the project's
// key. It makes the log of a run that holds no more of them than its recording does.
//
// Goals: what names itself a secret in the ways that programs take them is found. Not goals: the shapes of secrets, which package
// scrub knows.
package secrets
