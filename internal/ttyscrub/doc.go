// Package ttyscrub finds secrets in what a terminal shows and in what is typed into it, says where they stand in the raw bytes,
// and masks them with as many bytes and columns as they have.
package ttyscrub
