package rabbitmq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/consumertest"
	"github.com/idemkit/idem/consumer/rabbitmq"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/sqlitestore"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	consumertest.Run(t, func(t testing.TB, need consumertest.Need) consumertest.Backend {
		b := &backend{path: path(t), names: need.Names}
		if !slices.Contains(need.Names, "probe") { // which asks what there is, and uses nothing
			b.place = b.open(t, need.Alone)
		}
		return consumertest.Backend{
			Ledger: openLedger(t, b.path), Publish: b.publish, Run: b.run, Dead: b.dead, Pending: func(_ context.Context, name string) (int, error) { return b.pending(t, name) },
			Kill: func(t testing.TB) { b.place.server.Kill(t) }, Restart: func(t testing.TB) { b.place.server.Start(t) },
			Cut: func(testing.TB) { b.place.link.Cut() }, Delete: b.delete, Crash: b.crash,
		}
	})
}

// backend is one test's.
type backend struct {
	path  string
	names []string
	place *place
}

type place struct {
	vhost  *testkit.RabbitMQVhost
	server *testkit.RabbitMQInstance // nil: shared
	link   *testkit.Link

	mu      sync.Mutex
	conn    *amqp.Connection // of the producer; nil: none
	channel *amqp.Channel
}

const exchange = "orders"

func (b *backend) open(t testing.TB, alone bool) *place {
	t.Helper()
	p := &place{}
	if alone {
		p.server = testkit.PrivateRabbitMQ(t)
		p.vhost = p.server.Vhost(t)
	} else {
		p.vhost = testkit.RabbitMQ(t)
	}
	p.link = testkit.Proxy(t, p.vhost.Addr)
	t.Cleanup(p.drop)
	for _, name := range b.names {
		adapter, err := rabbitmq.New(adapterConfig(p.vhost.URL(), name))
		if err != nil {
			t.Fatal(err)
		}
		// On a busy machine an election may take longer than the broker has patience, which it calls an internal error.
		testkit.Eventually(t, patience, "the topology of "+name, func() bool { return adapter.Declare(t.Context()) == nil })
	}
	return p
}

func adapterConfig(url, name string) rabbitmq.Config {
	config := configuration(url, name)
	config.Bindings = []rabbitmq.Binding{{Exchange: exchange, Kind: amqp.ExchangeFanout}}
	return config
}

func (b *backend) run(ctx context.Context, c *consumer.Consumer, concurrency int) error {
	p := b.place
	config := adapterConfig(p.vhost.URLVia(p.link.Addr()), c.Name())
	config.Concurrency = concurrency
	adapter, err := rabbitmq.New(config)
	if err != nil {
		return err
	}
	return adapter.Run(ctx, c)
}

// publish keeps its channel, for one that is opened for every message costs more than the message.
func (b *backend) publish(ctx context.Context, m consumer.Message) error {
	p := b.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		if err := p.dial(); err != nil {
			return err
		}
	}
	headers := amqp.Table{}
	for name, value := range m.Headers {
		headers[name] = value
	}
	confirmation, err := p.channel.PublishWithDeferredConfirmWithContext(ctx, exchange, "", false, false,
		amqp.Publishing{MessageId: m.ID, Headers: headers, Body: m.Body, DeliveryMode: amqp.Persistent})
	if err == nil {
		var acked bool
		if acked, err = confirmation.WaitContext(ctx); err == nil && !acked {
			err = errors.New("not confirmed")
		}
	}
	if err != nil {
		p.hangUp()
	}
	return err
}

func (p *place) dial() error {
	conn, err := amqp.DialConfig(p.vhost.URL(), amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).Dial(network, addr)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(5 * time.Second))
		}
		return conn, err
	}})
	if err != nil {
		return err
	}
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err != nil {
		_ = conn.Close()
		return err
	}
	p.conn, p.channel = conn, channel
	return nil
}

func (p *place) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangUp()
}

func (p *place) hangUp() {
	if p.conn != nil {
		_ = p.conn.CloseDeadline(time.Now().Add(5 * time.Second))
	}
	p.conn = nil
}

func (b *backend) dead(_ context.Context, name string) ([]consumer.Message, error) {
	conn, err := amqp.Dial(b.place.vhost.URL())
	if err != nil {
		return nil, err
	}
	defer conn.Close() // which gives back what was taken
	channel, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	var letters []consumer.Message
	for {
		d, there, err := channel.Get(name+".dead", false)
		if err != nil || !there {
			return letters, err
		}
		letter := consumer.Message{ID: d.MessageId, Body: d.Body, Headers: map[string]string{}}
		for name, value := range d.Headers {
			if text, ok := value.(string); ok {
				letter.Headers[name] = text
			}
		}
		letters = append(letters, letter)
	}
}

func (b *backend) pending(t testing.TB, name string) (int, error) {
	t.Helper()
	names := []string{name}
	for _, level := range configuration("", name).Retry {
		names = append(names, name+".retry."+rabbitmq.Short(level.Delay))
	}
	return messages(t, b.place.vhost, names...)
}

func (b *backend) delete(t testing.TB, name string) {
	t.Helper()
	if _, err := b.place.vhost.Channel(t).QueueDelete(name, false, false, false); err != nil {
		t.Fatal(err)
	}
}

// The test binary runs again as the process that is killed where these are set.
const (
	roleURL    = "IDEM_RABBITMQ_URL"
	roleName   = "IDEM_RABBITMQ_NAME"
	roleLedger = "IDEM_RABBITMQ_LEDGER"
)

func (b *backend) crash(t testing.TB, name string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleURL+"="+b.place.vhost.URL(), roleName+"="+name, roleLedger+"="+b.path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "begun\n" {
		t.Errorf("the other process says %q, %v", line, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// hang is that process.
func hang(ctx context.Context) error {
	db, err := sqlitestore.Open(os.Getenv(roleLedger))
	if err != nil {
		return err
	}
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		return err
	}
	name := os.Getenv(roleName)
	return consumertest.Hang(ctx, ledger, name, os.Stdout, func(ctx context.Context, c *consumer.Consumer) error {
		adapter, err := rabbitmq.New(adapterConfig(os.Getenv(roleURL), name))
		if err != nil {
			return err
		}
		return adapter.Run(ctx, c)
	})
}

func openLedger(t testing.TB, path string) idem.Ledger {
	t.Helper()
	db, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := sqlitestore.Migrate(t.Context(), db, sqlitestore.Options{}); err != nil {
		t.Fatal(fmt.Errorf("migrate: %w", err))
	}
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}
