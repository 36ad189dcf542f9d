package e2e_test

import (
	"syscall"
	"testing"
	"time"
)

const stopSignal = syscall.SIGTERM

// TestKilledInTheMiddle: the claim's lease runs out, and the next duplicate takes over.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(t *testing.T, d *demo, v *visitor, token, item string){
		"kill -9": func(t *testing.T, d *demo, v *visitor, token, item string) {
			t.Helper()
			running := v.begin(v.ordering(token, "?delay=20s", one(item)))
			d.backend.running(t, "order.create")
			d.kill()
			<-running.done
		},
		"exit": func(t *testing.T, d *demo, v *visitor, token, item string) {
			t.Helper()
			if a, err := v.try(v.ordering(token, "?fail=exit", one(item))); err == nil {
				t.Fatalf("the process was to end, and answered %d %s", a.StatusCode, a.body)
			}
			d.gone(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBackend(t, func(t *testing.T, b *backend) {
				d := start(t, b, "IDEM_LEASE=1s")
				v := visit(t, d)
				token, item := v.token(), v.item()
				how(t, d, v, token, item)
				d.restart(t)
				v.wantOrders(item, 0)
				second := v.submit(token, "?fail=exit", one(item))
				v.wantFirst(second, 2)
				v.wantReplay(v.submit(token, "", one(item)), second)
				v.wantOrders(item, 1)
			})
		})
	}
}

// TestTakenOverElsewhere: the duplicate waits at another process, and goes on when the first one is dead.
func TestTakenOverElsewhere(t *testing.T) {
	t.Parallel()
	b := redisAndPostgres(t)
	doomed := start(t, b, "IDEM_LEASE=1s")
	v := visit(t, doomed)
	other := v.at(start(t, b, "IDEM_LEASE=1s"))
	token, item := v.token(), v.item()
	running := v.begin(v.ordering(token, "?delay=20s", one(item)))
	b.running(t, "order.create")
	waiting := other.begin(other.ordering(token, "", one(item)))
	doomed.kill()
	<-running.done
	other.wantFirst(other.wait(waiting), 2)
	other.wantOrders(item, 1)
}

// TestAnsweredAndDied: the answer was sent, and Redis was never told. It still says that the first one runs, for a minute; the ledger knows better.
func TestAnsweredAndDied(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, b *backend) {
		d := start(t, b, "IDEM_LEASE=1m")
		v := visit(t, d)
		token, item := v.token(), v.item()
		running := v.begin(v.ordering(token, "?delay=500ms", one(item)))
		b.running(t, "order.create") // the token is spent by then
		b.link.Refuse(true)
		b.link.Cut()
		first := v.wait(running)
		v.wantFirst(first, 1)
		d.kill()

		b.link.Refuse(false)
		d.restart(t)
		begun := time.Now()
		v.wantReplay(v.submit(token, "", one(item)), first)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the replay took %v", took)
		}
		v.wantOrders(item, 1)
	})
}

// TestAnsweredAndKilled: no fault but kill -9 right behind the answer.
func TestAnsweredAndKilled(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, b *backend) {
		d := start(t, b)
		v := visit(t, d)
		token, item := v.token(), v.item()
		first := v.submit(token, "", one(item))
		d.kill()
		v.wantFirst(first, 1)
		d.restart(t)
		v.wantReplay(v.submit(token, "", one(item)), first)
		v.wantOrders(item, 1)
	})
}
