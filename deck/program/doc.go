// Package program is what a recorded program starts with: its file, its environment, the ports that are served to it.
package program
