package web

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spoolMemory is how much of a body stays in memory; the rest of a larger one goes to a temporary file.
const spoolMemory = 1 << 20

// spool is a body that can be read any number of times.
type spool struct {
	memory []byte
	file   *os.File
	size   int64
}

// newSpool reads the source to its end.
func newSpool(source io.Reader) (*spool, error) {
	var head bytes.Buffer
	n, err := io.CopyN(&head, source, spoolMemory)
	s := &spool{memory: head.Bytes(), size: n}
	if errors.Is(err, io.EOF) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, s.spill(source)
}

// spill moves what came so far to a file and copies the rest behind it. The name goes at once, so that a crash leaves nothing behind.
func (s *spool) spill(source io.Reader) error {
	file, err := os.CreateTemp("", "idem-body-*")
	if err != nil {
		return err
	}
	_ = os.Remove(file.Name())
	s.file = file
	s.size, err = io.Copy(file, io.MultiReader(bytes.NewReader(s.memory), source))
	s.memory = nil
	if err != nil {
		s.close()
	}
	return err
}

func (s *spool) reader() io.Reader {
	if s.file != nil {
		return io.NewSectionReader(s.file, 0, s.size)
	}
	return bytes.NewReader(s.memory)
}

func (s *spool) bytes() ([]byte, error) {
	if s.file == nil {
		return s.memory, nil
	}
	return io.ReadAll(s.reader())
}

// close is for every spool, and harmless twice. Where an open file could not be unnamed it is now.
func (s *spool) close() {
	if s != nil && s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
		s.file = nil
	}
}
