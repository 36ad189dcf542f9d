package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Why a session ended, beside the broker's own errors.
var (
	errLost        = errors.New("rabbitmq: the connection or channel was closed")
	errCancelled   = errors.New("rabbitmq: the broker cancelled the consumer; its queue was deleted, or has no leader")
	errSilent      = errors.New("rabbitmq: the broker does not answer")
	errUnconfirmed = errors.New("rabbitmq: the broker did not confirm a publication")
	errUnroutable  = errors.New("rabbitmq: no queue took a publication")
)

// closing bounds a graceful close.
const closing = 2 * time.Second

// link is one connection with a channel to consume on and one to publish on: an error on one does not take the acknowledgements of the other.
type link struct {
	timeout    time.Duration
	conn       *amqp.Connection
	consuming  *amqp.Channel
	publishing *amqp.Channel
	tag        string
	deliveries <-chan amqp.Delivery
	closed     chan *amqp.Error // of the consuming channel
	broken     chan error       // an acknowledgement or publication failed

	mu       sync.Mutex       // one publication at a time: a returned one is known by that
	returned chan amqp.Return // what no queue took

	cut     sync.Mutex
	raw     net.Conn // closing it is the one way out that needs no answer of the broker
	severed bool
}

// dial connects and carries out setup. The end of ctx ends it.
func (c Config) dial(ctx context.Context, name string, setup func(*link) error) (*link, error) {
	l := &link{timeout: c.ConfirmTimeout, broken: make(chan error, 1), returned: make(chan amqp.Return, 1), closed: make(chan *amqp.Error, 1)}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("idem " + name)
	config := amqp.Config{Heartbeat: c.Heartbeat, TLSClientConfig: c.TLS, Properties: properties, Dial: l.connect(ctx)}
	defer context.AfterFunc(ctx, l.sever)()
	conn, err := amqp.DialConfig(c.URL, config)
	if err == nil {
		l.conn = conn
		err = l.within(func() error { return setup(l) })
	}
	if err != nil {
		l.close()
		return nil, l.why(err)
	}
	return l, nil
}

// connect bounds the handshake; amqp091-go takes the deadline away when it is done.
func (l *link) connect(ctx context.Context) func(network, addr string) (net.Conn, error) {
	return func(network, addr string) (net.Conn, error) {
		dialer := net.Dialer{Timeout: l.timeout}
		raw, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		l.keep(raw)
		return raw, raw.SetDeadline(time.Now().Add(l.timeout))
	}
}

func (l *link) keep(raw net.Conn) {
	l.cut.Lock()
	defer l.cut.Unlock()
	l.raw = raw
	if l.severed {
		_ = raw.Close()
	}
}

// sever closes the connection without a word. Whatever waits for the broker ends with an error.
func (l *link) sever() {
	l.cut.Lock()
	defer l.cut.Unlock()
	l.severed = true
	if l.raw != nil {
		_ = l.raw.Close()
	}
}

// consume declares what is missing and asks for messages.
func (l *link) consume(c Config, name string) (err error) {
	if l.consuming, err = l.conn.Channel(); err != nil {
		return err
	}
	if l.publishing, err = l.conn.Channel(); err != nil {
		return err
	}
	if err = c.declare(l.consuming); err != nil {
		return err
	}
	if err = l.publishing.Confirm(false); err != nil {
		return err
	}
	l.publishing.NotifyReturn(l.returned)
	l.consuming.NotifyClose(l.closed)
	if err = l.consuming.Qos(c.Prefetch, 0, false); err != nil {
		return err
	}
	l.tag = name + "-" + rand.Text()[:8]
	if l.deliveries, err = l.consuming.Consume(c.Queue, l.tag, false, false, false, false, nil); err != nil {
		return fmt.Errorf("rabbitmq: consume from %s: %w", c.Queue, err)
	}
	return nil
}

// within severs the connection when f takes longer than the broker may: whatever f waits for then ends with an error.
func (l *link) within(f func() error) error {
	defer time.AfterFunc(l.timeout, func() {
		l.fail(fmt.Errorf("%w, for %v", errSilent, l.timeout))
		l.sever()
	}).Stop()
	return f()
}

// publish returns when the broker has the message safe in the queue.
func (l *link) publish(queue string, p amqp.Publishing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.within(func() error {
		confirmation, err := l.publishing.PublishWithDeferredConfirm("", queue, true, false, p)
		if err != nil {
			return err
		}
		if !confirmation.Wait() {
			return fmt.Errorf("%w, to %s", errUnconfirmed, queue)
		}
		select {
		case back := <-l.returned: // it comes before the confirmation
			return fmt.Errorf("%w: %s: %s", errUnroutable, queue, back.ReplyText)
		default:
			return nil
		}
	})
}

func (l *link) ack(d amqp.Delivery) error {
	return l.within(func() error { return d.Ack(false) })
}

// fail ends the session with its first error.
func (l *link) fail(err error) {
	select {
	case l.broken <- err:
	default:
	}
}

// why prefers what made the connection break to how that looks from here.
func (l *link) why(err error) error {
	select {
	case first := <-l.broken:
		return first
	default:
		return err
	}
}

// stop takes no further messages and gives back those that no handler has seen.
func (l *link) stop() {
	defer time.AfterFunc(closing, l.sever).Stop()
	if l.consuming.Cancel(l.tag, false) != nil {
		return // the connection is gone, and with it what was delivered
	}
	for d := range l.deliveries {
		if d.Nack(false, true) != nil {
			return
		}
	}
}

// close never takes longer than closing. What was not acknowledged is delivered again.
func (l *link) close() {
	defer l.sever()
	if l.conn == nil {
		return
	}
	defer time.AfterFunc(closing, l.sever).Stop()
	_ = l.conn.Close() // it may be closed already
}
