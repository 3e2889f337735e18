// Package runtrace holds the records of an agent's run as its trace keeps them: started, turn, ended, their limits and their lines.
package runtrace
