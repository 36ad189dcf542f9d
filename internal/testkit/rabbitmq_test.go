package testkit_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem/internal/testkit"
)

func TestRabbitMQGivesEachTestItsOwnVirtualHost(t *testing.T) {
	t.Parallel()
	first, second := testkit.RabbitMQ(t), testkit.RabbitMQ(t)
	if first.Addr != second.Addr {
		t.Errorf("two brokers for one test binary: %s and %s", first.Addr, second.Addr)
	}
	declare(t, first, "only_here")
	publish(t, first, "only_here", "a")
	if depth := first.Depth(t, "only_here"); depth != 1 {
		t.Errorf("depth %d, want 1", depth)
	}
	if depth := second.Depth(t, "only_here"); depth != 0 {
		t.Errorf("the other virtual host has it, depth %d", depth)
	}
	queues, err := first.Queues()
	if err != nil || len(queues) != 1 || queues[0].Name != "only_here" || !queues[0].Durable || queues[0].Arguments["x-queue-type"] != "quorum" {
		t.Errorf("queues %+v, %v", queues, err)
	}
	if queues, err := second.Queues(); err != nil || len(queues) != 0 {
		t.Errorf("queues of the other %+v, %v", queues, err)
	}
	testkit.Eventually(t, 5*time.Second, "the message is counted", func() bool {
		queues, err := first.Queues()
		return err == nil && queues[0].Messages == 1
	})
}

func TestPrivateRabbitMQKeepsItsDataOverACrash(t *testing.T) {
	t.Parallel()
	server := testkit.PrivateRabbitMQ(t)
	vhost := server.Vhost(t)
	declare(t, vhost, "kept")
	publish(t, vhost, "kept", "a")

	server.Kill(t)
	if server.Running() {
		t.Error("it says that it runs after Kill")
	}
	if conn, err := amqp.Dial(vhost.URL()); err == nil {
		_ = conn.Close()
		t.Fatal("a killed broker answered")
	}

	server.Start(t)
	if vhost.Addr != server.Addr() {
		t.Errorf("it is at %s now, not at %s", server.Addr(), vhost.Addr)
	}
	testkit.Eventually(t, 20*time.Second, "the message is there after the restart", func() bool { return vhost.Depth(t, "kept") == 1 })
}

func declare(t *testing.T, vhost *testkit.RabbitMQVhost, queue string) {
	t.Helper()
	if _, err := vhost.Channel(t).QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, vhost *testkit.RabbitMQVhost, queue, body string) {
	t.Helper()
	confirmation, err := vhost.Channel(t).PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, amqp.Publishing{Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	if acked, err := confirmation.WaitContext(t.Context()); err != nil || !acked {
		t.Fatalf("confirmed %v, %v", acked, err)
	}
}
