// Package lazyregexp has regular expressions that are compiled when they are first asked for: every program of this module starts as
// itself several times for one recording, and a start uses hardly any of them.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a regular expression that may not have been compiled. Its methods are those of regexp.Regexp, and several goroutines may
// call them at once.
type Regexp struct {
	expr string
	once sync.Once
	re   *regexp.Regexp // what once has compiled
}

// New returns the Regexp of an expression. A wrong one panics when it is first used. It is so little that the compiler does it for the
// variables of a package: nothing is left to do at the start of a program.
func New(expr string) *Regexp { return &Regexp{expr: expr} }

func (re *Regexp) compiled() *regexp.Regexp {
	re.once.Do(func() { re.re = regexp.MustCompile(re.expr) })
	return re.re
}

// MatchString is that of regexp.Regexp.
func (re *Regexp) MatchString(s string) bool { return re.compiled().MatchString(s) }

// FindString is that of regexp.Regexp.
func (re *Regexp) FindString(s string) string { return re.compiled().FindString(s) }

// FindIndex is that of regexp.Regexp.
func (re *Regexp) FindIndex(b []byte) []int { return re.compiled().FindIndex(b) }

// FindSubmatchIndex is that of regexp.Regexp.
func (re *Regexp) FindSubmatchIndex(b []byte) []int { return re.compiled().FindSubmatchIndex(b) }

// FindSubmatch is that of regexp.Regexp.
func (re *Regexp) FindSubmatch(b []byte) [][]byte { return re.compiled().FindSubmatch(b) }

// FindStringSubmatch is that of regexp.Regexp.
func (re *Regexp) FindStringSubmatch(s string) []string { return re.compiled().FindStringSubmatch(s) }

// FindAllStringSubmatch is that of regexp.Regexp.
func (re *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return re.compiled().FindAllStringSubmatch(s, n)
}

// ReplaceAllString is that of regexp.Regexp.
func (re *Regexp) ReplaceAllString(s, by string) string { return re.compiled().ReplaceAllString(s, by) }

// Match is that of regexp.Regexp.
func (re *Regexp) Match(b []byte) bool { return re.compiled().Match(b) }

// FindAllSubmatchIndex is that of regexp.Regexp.
func (re *Regexp) FindAllSubmatchIndex(b []byte, n int) [][]int {
	return re.compiled().FindAllSubmatchIndex(b, n)
}

// FindAll is regexp.Regexp's.
func (re *Regexp) FindAll(b []byte, n int) [][]byte { return re.compiled().FindAll(b, n) }

// Find is that of regexp.Regexp.
func (re *Regexp) Find(b []byte) []byte { return re.compiled().Find(b) }

// ReplaceAllStringFunc is that of regexp.Regexp.
func (re *Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return re.compiled().ReplaceAllStringFunc(s, by)
}
