package terminal

// readSize is how much is read at once, in bytes.
const readSize = 64 << 10

// readAll reads what the program writes until nobody can write any more, or the terminal is closed. It waits for nobody but
// SessionOptions.Output and Keeper.
func (s *Session) readAll() {
	defer close(s.readDone)
	out, buf := s.pty.Output(), make([]byte, readSize)
	for {
		n, err := out.Read(buf)
		if n > 0 {
			s.busy.Store(true)
			s.note()
			s.took(buf[:n])
			s.note()
			s.busy.Store(false)
		}
		if err != nil {
			return // EIO where the program's side is closed
		}
	}
}

// took hands on what was read.
func (s *Session) took(p []byte) {
	if s.o.Output != nil && s.outErr == nil {
		_, s.outErr = s.o.Output.Write(p)
	}
	s.keep.Lock()
	defer s.keep.Unlock()
	if s.o.Keeper != nil {
		s.kept(s.o.Keeper.Output(p))
	}
	if s.feed != nil {
		s.feed.write(p)
	}
	s.read.Add(int64(len(p)))
}
