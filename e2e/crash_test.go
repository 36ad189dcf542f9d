package e2e_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/tokens"
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

// TestFrozen beyond its lease and thawed: the other one's claim stands, and what the frozen one wrote is rolled back. Its client gets the winner's answer.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(t *testing.T) *backend{"memory and SQLite": embedded, "Redis and Postgres": redisAndPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := made(t)
			frozen := start(t, b, "IDEM_LEASE=1s")
			v := visit(t, frozen)
			other := v.at(start(t, b, "IDEM_LEASE=1s"))
			token, item := v.token(), v.item()
			running := v.begin(v.ordering(token, "?delay=1500ms", one(item)))
			b.running(t, "order.create")
			must(t, frozen.process.Signal(syscall.SIGSTOP))
			second := other.submit(token, "", one(item))
			must(t, frozen.process.Signal(syscall.SIGCONT))
			other.wantFirst(second, 2)
			v.wantReplay(v.wait(running), second)
			v.wantOrders(item, 1)
		})
	}
}

// TestKeysRotated: a token outlives the restart that put another key in front, and not the one that takes its key away.
func TestKeysRotated(t *testing.T) {
	t.Parallel()
	b := bare(t).onPostgres(t, testkit.Postgres(t))
	old, err := tokens.GenerateHS256("old")
	must(t, err)
	next, err := tokens.GenerateHS256("next")
	must(t, err)
	d := start(t, b, "IDEM_KEYS="+old)
	v := visit(t, d)
	before, item := v.token(), v.item()
	again := func(ring string) {
		d.process.End(stopSignal)
		d.env = append(d.env, "IDEM_KEYS="+ring)
		d.restart(t)
	}
	again(next + "," + old)
	first := v.submit(before, "", one(item))
	v.wantFirst(first, 1)
	after, other := v.token(), v.item()
	again(next)
	v.wantRefused(v.submit(before, "", one(item)), http.StatusForbidden, "token_invalid")
	v.wantFirst(v.submit(after, "", one(other)), 1) // the same browser, whatever the keys
	v.wantOrders(item, 1)
}
