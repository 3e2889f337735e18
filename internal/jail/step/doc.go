// Package step says which step of making a jail failed, and where.
//
// Goals: one error for all that the recorder, the init and the exec stage do before the program starts. Not goals: what to do about it,
// which the jail knows.
package step
