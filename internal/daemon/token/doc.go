// Package token keeps the tokens of a daemon in files and finds them by its address.
package token
