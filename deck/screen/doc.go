// Package screen is what a program's terminal showed: a Tracker follows a screen through time and knows what moves by itself,
// Changes tells it in lines for people, a Side is compared with another, and a Watcher says when a replay's screen shows what
// it showed while recording.
//
// Goals: one screen is held, however long the recording is. Not goals: drawing, which package vt does.
package screen
