package exchange

import (
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxChunks bounds the boundaries that are kept of an answer: its record is one line, and a line has its limit. What comes
// after that many chunks counts to the last one.
const maxChunks = 500_000

// chunkMap carries the boundaries of chunks over from the bytes that came to the scrubbed bytes that are stored. A
// boundary inside a secret comes to stand behind its placeholder, so that a secret counts to the chunk in which it began.
type chunkMap struct {
	chunks []tape.Chunk // Offset and Length in the bytes that came
	total  int64        // bytes that came
	moves  []move
}

// move is one secret: the bytes from start to end of what came are n bytes in the store.
type move struct {
	start, end int64
	n          int
}

// add notes a chunk that came.
func (m *chunkMap) add(c tape.Chunk, length int) {
	if len(m.chunks) == maxChunks {
		m.extend(length)
		return
	}
	c.Offset, c.Length = m.total, int64(length)
	m.chunks = append(m.chunks, c)
	m.total += int64(length)
}

// extend adds bytes to the last chunk.
func (m *chunkMap) extend(length int) {
	m.chunks[len(m.chunks)-1].Length += int64(length)
	m.total += int64(length)
}

// replaced notes that a secret was replaced; in order of start.
func (m *chunkMap) replaced(start, end int64, n int) {
	m.moves = append(m.moves, move{start, end, n})
}

// stored returns the chunks in the stored bytes.
func (m *chunkMap) stored() []tape.Chunk {
	moves, shift, at := m.moves, int64(0), int64(0)
	for i := range m.chunks {
		c := &m.chunks[i]
		end := c.Offset + c.Length
		for len(moves) > 0 && moves[0].end <= end {
			shift += int64(moves[0].n) - (moves[0].end - moves[0].start)
			moves = moves[1:]
		}
		stop := end + shift
		if len(moves) > 0 && moves[0].start < end { // the boundary is inside this secret
			stop = moves[0].start + shift + int64(moves[0].n)
		}
		c.Offset, c.Length = at, stop-at
		at = stop
	}
	return m.chunks
}
