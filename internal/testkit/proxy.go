package testkit

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a TCP proxy between a client and a server of any protocol, with faults that are switched at run time. All methods are safe for
// concurrent use.
type Link struct {
	target   string
	listener net.Listener
	done     chan struct{}
	running  sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	latency time.Duration
	drops   int
	refuse  bool
}

// Proxy starts a link without faults to the target, a "host:port", on a free loopback port. It ends with the test and leaves no goroutine.
func Proxy(t testing.TB, target string) *Link {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	link := &Link{target: target, listener: listener, done: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	link.running.Go(link.accept)
	t.Cleanup(link.close)
	return link
}

// Addr is where clients connect, a "host:port".
func (l *Link) Addr() string { return l.listener.Addr().String() }

// DropReplies loses the next replies of the server, one on each connection: what the client sent reaches the server and is carried out, the
// reply is swallowed, and the client's connection is then cut. count says for how many replies; below 0 for all until the next call, 0 ends it.
func (l *Link) DropReplies(count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drops = count
}

// Latency delays whatever clients send from now on, so that every round trip takes so much longer. 0 ends it.
func (l *Link) Latency(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = delay
}

// Cut closes all connections that are open now. What was sent before may or may not reach the server.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close()
	}
}

// Refuse resets new connections as they come, until it is called with false. Open ones stay: see Cut.
func (l *Link) Refuse(refuse bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = refuse
}

func (l *Link) close() {
	close(l.done)
	_ = l.listener.Close()
	l.Cut()
	l.running.Wait()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		if l.refused() {
			_ = client.(*net.TCPConn).SetLinger(0)
			_ = client.Close()
			continue
		}
		l.running.Go(func() { l.serve(client.(*net.TCPConn)) })
	}
}

// discard closes what may be closed already.
func discard(conn net.Conn) { _ = conn.Close() }

func (l *Link) refused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refuse
}

func (l *Link) serve(client *net.TCPConn) {
	defer discard(client)
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.target)
	if err != nil {
		return
	}
	server := conn.(*net.TCPConn)
	defer discard(server)
	if !l.register(client, server) {
		return
	}
	defer l.unregister(client, server)

	var requests sync.WaitGroup
	requests.Go(func() { l.forward(server, client) })
	l.reply(client, server)
	requests.Wait()
}

// forward ends the server's side with the client's, so that the server still carries out all that was sent.
func (l *Link) forward(server, client *net.TCPConn) {
	defer func() { _ = server.CloseWrite() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := client.Read(buffer)
		if n > 0 && l.pause() {
			if _, broken := server.Write(buffer[:n]); broken != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *Link) reply(client, server *net.TCPConn) {
	defer discard(client)
	buffer := make([]byte, 32<<10)
	for {
		n, err := server.Read(buffer)
		if n > 0 {
			if l.dropped() {
				_ = client.Close()
				_, _ = io.Copy(io.Discard, server)
				return
			}
			if _, broken := client.Write(buffer[:n]); broken != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pause waits for the latency and reports whether the link is still open.
func (l *Link) pause() bool {
	l.mu.Lock()
	delay := l.latency
	l.mu.Unlock()
	if delay <= 0 {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}

func (l *Link) dropped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drops > 0 {
		l.drops--
		return true
	}
	return l.drops < 0
}

func (l *Link) register(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		return false
	default:
	}
	for _, conn := range conns {
		l.conns[conn] = struct{}{}
	}
	return true
}

func (l *Link) unregister(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		delete(l.conns, conn)
	}
}
