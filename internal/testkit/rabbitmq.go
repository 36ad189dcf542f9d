package testkit

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// sharedRabbitMQ is the one broker of a test binary, as sharedPostgres is its one server.
var sharedRabbitMQ struct { //nolint:gochecknoglobals // the tests of one binary share nothing else, and a broker each would take minutes
	sync.Mutex
	server *RabbitMQInstance
}

// RabbitMQVhost is an empty virtual host of one test: its queues are its own.
type RabbitMQVhost struct {
	Name string // the virtual host
	Addr string // "host:port" of its broker, for a Proxy

	server *RabbitMQInstance
}

// RabbitMQQueue is what the broker says of a queue.
type RabbitMQQueue struct {
	Name      string         `json:"name"`
	Type      string         `json:"type"` // "quorum", "classic"
	Durable   bool           `json:"durable"`
	Arguments map[string]any `json:"arguments"`
	Messages  int            `json:"messages"` // waiting and unacknowledged; as it was up to a fifth of a second ago
}

// RabbitMQ returns a new virtual host on the test binary's own broker, which starts with the first call. It is deleted, with whatever connections
// are left on it, when the test ends.
func RabbitMQ(t testing.TB) *RabbitMQVhost {
	t.Helper()
	vhost := sharedBroker(t).Vhost(t)
	t.Cleanup(func() { vhost.server.must(t, http.MethodDelete, "/api/vhosts/"+vhost.Name, nil) })
	return vhost
}

func sharedBroker(t testing.TB) *RabbitMQInstance {
	t.Helper()
	sharedRabbitMQ.Lock()
	defer sharedRabbitMQ.Unlock()
	if sharedRabbitMQ.server == nil {
		sharedRabbitMQ.server = newRabbitMQ(t)
	}
	return sharedRabbitMQ.server
}

// Vhost creates a virtual host, which goes with its broker. It is not deleted before: in RabbitMQ 3.10 deleting quorum queues with at-least-once dead
// lettering just after a start takes all others of that kind with them, which answer with 541 from then on.
func (s *RabbitMQInstance) Vhost(t testing.TB) *RabbitMQVhost {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:12])
	s.must(t, http.MethodPut, "/api/vhosts/"+name, nil)
	s.must(t, http.MethodPut, "/api/permissions/"+name+"/guest", map[string]string{"configure": ".*", "write": ".*", "read": ".*"})
	return &RabbitMQVhost{Name: name, Addr: s.Addr(), server: s}
}

// URL is the address of the virtual host, as amqp091-go takes it.
func (v *RabbitMQVhost) URL() string { return v.URLVia(v.Addr) }

// URLVia is the address by way of another "host:port", such as a Proxy's.
func (v *RabbitMQVhost) URLVia(addr string) string {
	return "amqp://guest:guest@" + addr + "/" + v.Name
}

// Channel opens a connection and a channel on it in confirm mode. Both are closed with the test.
func (v *RabbitMQVhost) Channel(t testing.TB) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(v.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := channel.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return channel
}

// Queues lists the queues of the virtual host. It gives an error where the broker is away.
func (v *RabbitMQVhost) Queues() ([]RabbitMQQueue, error) {
	answer, err := v.server.call(http.MethodGet, "/api/queues/"+v.Name+"?disable_stats=true&enable_queue_totals=true", nil)
	if err != nil {
		return nil, err
	}
	var queues []RabbitMQQueue
	return queues, json.Unmarshal(answer, &queues)
}

// Depth is how many messages of a queue wait to be delivered: those that a consumer holds are not among them. It is 0 where there is no such queue.
func (v *RabbitMQVhost) Depth(t testing.TB, queue string) int {
	t.Helper()
	conn, err := amqp.Dial(v.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	found, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return 0
	}
	return found.Messages
}

func (s *RabbitMQInstance) must(t testing.TB, method, path string, body any) {
	t.Helper()
	if _, err := s.call(method, path, body); err != nil {
		t.Fatal(err)
	}
}

// call asks the management API. It keeps no connection: a test that counts its goroutines would find it.
func (s *RabbitMQInstance) call(method, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	address := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.management)) + path
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth("guest", "guest")
	request.Close = true
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return answer, nil
}
