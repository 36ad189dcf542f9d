package shop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/demo/shop"
	"github.com/idemkit/idem/internal/testkit"
)

// wantGranted waits for the points of an order; they are on its receipt then, and were granted once.
func (s *site) wantGranted(id string, points int) {
	s.Helper()
	testkit.Eventually(s.T, 20*time.Second, fmt.Sprintf("the receipt shows %d points", points), func() bool {
		return strings.Contains(s.get("/orders/"+id).body, fmt.Sprintf("%d points granted", points))
	})
	if n := s.number(`SELECT count(*) FROM shop_points WHERE order_id = $1`, id); n != 1 {
		s.Errorf("granted %d times", n)
	}
	if n := s.number(`SELECT count(*) FROM shop_outbox WHERE order_id = $1`, id); n != 0 {
		s.Error("the event is still to be handled")
	}
}

// ordering places an order of two pieces.
func (s *site) ordering() (id string) {
	s.Helper()
	a := s.order(s.token(), "", `{"item":"`+item()+`","quantity":2}`)
	s.want(a, http.StatusCreated)
	return member[string](s, a, "id")
}

func TestPointsOnTheReceipt(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		token, body := s.token(), one(item())
		a := s.order(token, "", body)
		s.want(a, http.StatusCreated)
		s.wantReplay(s.order(token, "", body), a)
		s.wantGranted(member[string](s, a, "id"), 10)
		s.wantGranted(s.ordering(), 20)
		s.parts.forget()
		s.wantGranted(s.ordering(), 20)
	})
}

// An attempt that failed announces nothing, and an order that nobody guarded earns nothing.
func TestNoPoints(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(s *site) {
		before := func() int {
			return s.number(`SELECT (SELECT count(*) FROM shop_points) + (SELECT count(*) FROM shop_outbox)`)
		}
		token, body := s.token(), one(item())
		for _, fail := range []string{"500", "422", "panic"} {
			s.order(s.token(), "?fail="+fail, body)
		}
		s.order(token, "?fail=500", body)
		unguarded := s.post("/api/unguarded/orders", body)
		s.want(unguarded, http.StatusCreated)
		if n := before(); n != 0 {
			s.Errorf("%d events and grants", n)
		}
		if a := s.get(unguarded.Header.Get("Location")); strings.Contains(a.body, "points") {
			s.Errorf("the receipt of an unguarded order: %s", a.body)
		}
		a := s.order(token, "", body)
		s.want(a, http.StatusCreated)
		s.wantGranted(member[string](s, a, "id"), 10)
	})
}

// unreliable is a queue that says it failed, loses or doubles what is published, in turn.
type unreliable struct {
	*consumer.Queue
	calls atomic.Int64
}

var errBroker = errors.New("the broker is away")

func (u *unreliable) Publish(ctx context.Context, m consumer.Message) error {
	switch u.calls.Add(1) % 4 {
	case 1:
		return errBroker
	case 2:
		return nil
	}
	return errors.Join(u.Queue.Publish(ctx, m), u.Queue.Publish(ctx, m), errBroker)
}

// The broker loses and doubles; the outbox sends again, and the ledger knows what was handled.
func TestPointsOverAnUnreliableBroker(t *testing.T) {
	t.Parallel()
	for name, parts := range backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openWith(t, parts(t), &unreliable{Queue: consumer.NewQueue("orders")})
			ids := []string{s.ordering(), s.ordering(), s.ordering(), s.ordering()}
			for _, id := range ids {
				s.wantGranted(id, 20)
			}
		})
	}
}

// Two processes look after one outbox.
func TestPointsAtTwoProcesses(t *testing.T) {
	t.Parallel()
	for name, made := range backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := made(t)
			one, other := open(t, parts), open(t, parts)
			var ids []string
			for range 5 {
				ids = append(ids, one.ordering(), other.ordering())
			}
			for _, id := range ids {
				one.wantGranted(id, 20)
			}
		})
	}
}

// What was ordered while nobody granted points is granted later: the event has been waiting in the database.
func TestPointsOfEarlier(t *testing.T) {
	t.Parallel()
	for name, made := range backends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := made(t)
			deaf := openWith(t, parts, nowhere{})
			id := deaf.ordering()
			if a := deaf.get("/orders/" + id); !strings.Contains(a.body, "20 points on their way") {
				t.Errorf("the receipt: %s", a.body)
			}
			deaf.close()
			open(t, parts).wantGranted(id, 20)
		})
	}
}

// nowhere takes everything and hands out nothing.
type nowhere struct{}

func (nowhere) Publish(context.Context, consumer.Message) error { return nil }

func (nowhere) Run(ctx context.Context, _ *consumer.Consumer) error {
	<-ctx.Done()
	return nil
}

// What is no event is given up at once, and keeps nobody from the next.
func TestPointsForNoOrder(t *testing.T) {
	t.Parallel()
	queue := consumer.NewQueue("orders")
	s := openWith(t, onSQLite(t), queue)
	for id, body := range map[string]string{"m-1": "no JSON", "m-2": `{"orderId":"o-2","points":1}`} {
		must(t, queue.Publish(t.Context(), consumer.Message{ID: id, Body: []byte(body)}))
	}
	s.wantGranted(s.ordering(), 20)
	testkit.Eventually(t, 10*time.Second, "both are given up", func() bool { return len(queue.Dead()) == 2 })
	if n := s.number(`SELECT count(*) FROM shop_points`); n != 1 {
		t.Errorf("%d grants", n)
	}
}

// ending is a broker whose Run ends by itself.
type ending struct{ nowhere }

func (ending) Run(context.Context, *consumer.Consumer) error { return errBroker }

func TestPointsEndWithTheirBroker(t *testing.T) {
	t.Parallel()
	p := onSQLite(t)
	points, err := shop.NewPoints(shop.PointsConfig{Storage: p.storage, Ledger: p.ledger, Broker: ending{}})
	must(t, err)
	if err := points.Run(t.Context()); !errors.Is(err, errBroker) {
		t.Errorf("%v", err)
	}
	if points.Type() != "consume.points" {
		t.Errorf("type %q", points.Type())
	}
}

func TestPointsNeedTheirParts(t *testing.T) {
	t.Parallel()
	p := onSQLite(t)
	for name, config := range map[string]shop.PointsConfig{
		"storage": {Ledger: p.ledger}, "ledger": {Storage: p.storage}, "lease": {Storage: p.storage, Ledger: p.ledger, Lease: -1},
	} {
		if _, err := shop.NewPoints(config); err == nil || name != "storage" && !errors.Is(err, idem.ErrInvalid) {
			t.Errorf("points without their %s: %v", name, err)
		}
	}
}

// Without its database the relay goes on asking.
func TestPointsWithoutADatabase(t *testing.T) {
	t.Parallel()
	p, db := onFile(t)
	must(t, db.Close())
	var said safeBuffer
	points, err := shop.NewPoints(shop.PointsConfig{Storage: p.storage, Ledger: p.ledger, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- points.Run(ctx) }()
	testkit.Eventually(t, 10*time.Second, "it has said so twice", func() bool { return strings.Count(said.String(), "events are not published") > 1 })
	stop()
	must(t, <-ended)
}

// safeBuffer takes a logger's lines while they are read.
type safeBuffer struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (b *safeBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.Write(line)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines.String()
}
