// Package testkit starts the real components that tests need: each on its own free loopback port, in its own temporary folder, ended with the
// test that started it. A missing component fails the test with the line that installs it.
package testkit

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binary finds a program in PATH or in one of the folders, which may be patterns of filepath.Glob. It fails the test with
// the line that installs pkg where there is none.
func Binary(t testing.TB, name, pkg string, folders ...string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, folder := range folders {
		found, _ := filepath.Glob(filepath.Join(folder, name))
		if len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Fatalf("%s is not installed; run: apt-get install -y --no-install-recommends %s", name, pkg)
	return ""
}

// FreePort returns a loopback TCP port that nobody listens on at the moment.
func FreePort(t testing.TB) int {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// Process is a started program.
type Process struct {
	cmd    *exec.Cmd
	output *lockedBuffer
	done   chan struct{}
}

// Start runs a program until the test ends, which sends it the stop signal and, after ten seconds, SIGKILL. The program
// also ends when the test binary dies. Credential, if any, must be set in cmd.SysProcAttr before.
func Start(t testing.TB, cmd *exec.Cmd, stop syscall.Signal) *Process {
	t.Helper()
	process := &Process{cmd: cmd, output: &lockedBuffer{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = process.output, process.output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	go func() { _ = cmd.Wait(); close(process.done) }()
	t.Cleanup(func() { process.End(stop) })
	return process
}

// End sends the signal and waits for the end; after ten seconds it kills. Ending twice is harmless.
func (p *Process) End(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Signal sends a signal, such as SIGSTOP, and returns at once.
func (p *Process) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output is what the program has printed so far.
func (p *Process) Output() string { return p.output.String() }

// Eventually polls until the condition holds, and fails the test after the deadline.
func Eventually(t testing.TB, within time.Duration, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(within); ; {
		if condition() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
