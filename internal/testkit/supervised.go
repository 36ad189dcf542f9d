package testkit

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// supervised is a server behind a shell script that outlives no test binary: it waits for a word or the end of its input, and then ends the server as a
// crash would, and removes the folder unless the word is "keep".
type supervised struct {
	folder     string
	supervisor *exec.Cmd // nil: not running
	hold       io.WriteCloser
}

func (s *supervised) begin(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.supervisor, s.hold = cmd, hold
}

// Running reports whether the server was started and not ended.
func (s *supervised) Running() bool { return s.supervisor != nil }

func (s *supervised) end(word string) {
	if s.supervisor == nil {
		if word != "keep" {
			_ = os.RemoveAll(s.folder)
		}
		return
	}
	_, _ = io.WriteString(s.hold, word+"\n")
	_ = s.hold.Close()
	_ = s.supervisor.Wait()
	s.supervisor = nil
}
