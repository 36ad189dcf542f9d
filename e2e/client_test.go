package e2e_test

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// TestClientLeaves: the work goes on without the client, and its answer waits for the retry.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		v := visit(t, start(t, b))
		token, item := v.token(), v.item()
		ctx, leave := context.WithCancel(t.Context())
		running := v.begin(v.ordering(token, "?delay=1s", one(item)).WithContext(ctx))
		b.running(t, "order.create")
		leave()
		<-running.done
		if running.err == nil {
			t.Fatalf("it was answered %d before it left", running.StatusCode)
		}
		retry := v.submit(token, "", one(item))
		v.want(retry, http.StatusCreated)
		if !replayed(retry) || member[float64](v, retry, "attempt") != 1 {
			t.Errorf("the work did not go on without its client: %v %s", retry.Header, retry.body)
		}
		v.wantOrders(item, 1)
	})
}

// TestGracefulStop: what runs is answered and recorded, and then the process ends.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		d := start(t, b)
		v := visit(t, d)
		token, item := v.token(), v.item()
		running := v.begin(v.ordering(token, "?delay=1500ms", one(item)))
		b.running(t, "order.create")
		must(t, d.process.Signal(stopSignal))
		first := v.wait(running)
		v.wantFirst(first, 1)
		if code := d.exit(t, 8*time.Second); code != 0 {
			t.Errorf("the process ended with %d", code)
		}
		d.restart(t)
		v.wantReplay(v.submit(token, "", one(item)), first)
		v.wantOrders(item, 1)
	})
}
