package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// recovery is within what time after a fault every call of the store must succeed again. The sentinel, or the cluster, needs about two seconds of it.
const recovery = 10 * time.Second

// go-redis#2229, PR#3769: READONLY after a fail-over, stuck for minutes. Traffic goes on all the while; behind it stands a ledger, so that not one
// call is refused and no operation is executed twice, whatever the fail-over loses.
func TestFailoverUnderTraffic(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault    func(*testing.T, *testkit.RedisSentinel) *testkit.RedisServer
		readOnly bool // the old primary refuses writes on connections that stay open
	}{
		"primary killed":              {fault: killPrimary},
		"primary demoted":             {fault: demotePrimary, readOnly: true},
		"primary replaced while well": {fault: replacePrimary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sentinel := testkit.Sentinel(t)
			rdb := sentinel.Client(t)
			storm := newStorm(t, redisstore.New(rdb, redisstore.Options{}))
			storm.blow(6)
			storm.answered(100)
			begun := time.Now()
			old := row.fault(t, sentinel)
			now := sentinel.AwaitFailover(t, old).Client(t)
			storm.recovered(begun, 32, func(q idem.Request) bool { return now.Exists(context.Background(), recordKey(q.Key)).Val() == 1 })
			storm.calm()
			if row.readOnly && old.Client(t).InfoMap(context.Background(), "errorstats").Item("Errorstats", "errorstat_READONLY") == "" {
				t.Error("the old primary refused no write: this was not the case of the report")
			}
		})
	}
}

func killPrimary(t *testing.T, s *testkit.RedisSentinel) *testkit.RedisServer {
	t.Helper()
	return s.KillPrimary(t)
}

func demotePrimary(t *testing.T, s *testkit.RedisSentinel) *testkit.RedisServer {
	t.Helper()
	return s.Demote(t)
}

func replacePrimary(t *testing.T, s *testkit.RedisSentinel) *testkit.RedisServer {
	t.Helper()
	return s.Failover(t)
}

// One primary of a cluster dies under traffic; its slots are served again by its replica, the others' are served throughout.
func TestClusterFailoverUnderTraffic(t *testing.T) {
	t.Parallel()
	cluster := testkit.ReplicatedCluster(t, 3)
	rdb := cluster.Client(t)
	storm := newStorm(t, redisstore.New(rdb, redisstore.Options{}))
	storm.blow(6)
	storm.answered(100)
	begun := time.Now()
	cluster.Nodes[0].Kill()
	// So many keys that every primary has some: that it has none is once in three million.
	storm.recovered(begun, 40, func(idem.Request) bool { return true })
	storm.calm()
	promoted := 0
	for _, replica := range cluster.Replicas {
		if replica.Client(t).InfoMap(context.Background(), "replication").Item("Replication", "role") == "master" {
			promoted++
		}
	}
	if promoted != 1 {
		t.Errorf("%d replicas took a primary's place", promoted)
	}
}

// storm is traffic over an engine with a ledger: pairs of equal calls, each pair another operation.
type storm struct {
	*testing.T
	store  *redisstore.Store
	engine *idem.Engine
	stop   chan struct{}
	blown  sync.WaitGroup

	mu       sync.Mutex
	calls    []idem.Call
	runs     map[idem.Key]int
	failures int // of the entrance
}

func newStorm(t *testing.T, store *redisstore.Store) *storm {
	t.Helper()
	s := &storm{T: t, store: store, stop: make(chan struct{}), runs: map[idem.Key]int{}}
	s.engine = newEngine(t, store, true, func(_ context.Context, e idem.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.Kind == idem.EntranceFailed {
			s.failures++
		}
	})
	return s
}

// blow starts so many workers, which calm ends.
func (s *storm) blow(workers int) {
	for worker := range workers {
		s.blown.Go(func() {
			pause := time.NewTicker(3 * time.Millisecond)
			defer pause.Stop()
			for i := 0; ; i++ {
				select {
				case <-s.stop:
					return
				case <-pause.C:
					s.pair(fmt.Sprint("storm-", worker, "-", i))
				}
			}
		})
	}
	s.Cleanup(s.end)
}

// end stops the workers, also where a test has failed.
func (s *storm) end() {
	s.mu.Lock()
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.mu.Unlock()
	s.blown.Wait()
}

// pair sends one operation twice at once. The token's being stored may fail: the ledger vouches for its signature.
func (s *storm) pair(id string) {
	call := order(id)
	_ = s.store.Issue(context.Background(), []idem.Token{token(call.Request, call.TokenID)})
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { s.send(call) })
	}
	both.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *storm) send(call idem.Call) {
	reply, err := s.engine.Do(context.Background(), call, func(context.Context) idem.Ending {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs[call.Key]++
		return idem.Ending{State: idem.Succeeded, Result: idem.Result{Status: 201, Body: []byte(call.RequestID), Kept: true}}
	})
	if err != nil || string(reply.Result.Body) != call.RequestID {
		s.Errorf("%s: answered %q, %v", call.RequestID, reply.Result.Body, err)
	}
}

// answered waits for so many further operations.
func (s *storm) answered(count int) {
	s.Helper()
	want := s.count(func() int { return len(s.calls) }) + count
	testkit.Eventually(s, 20*time.Second, fmt.Sprint(count, " operations are answered"), func() bool {
		return s.count(func() int { return len(s.calls) }) >= want
	})
}

func (s *storm) count(of func() int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of()
}

// recovered waits until so many submissions at once, on all connections there are, go through Redis alone and arrive where they should.
func (s *storm) recovered(since time.Time, at int, arrived func(idem.Request) bool) {
	s.Helper()
	round := 0
	testkit.Eventually(s, recovery-time.Since(since), "every call of the store succeeds again", func() bool {
		round++
		failed := make(chan error, at)
		var all sync.WaitGroup
		for i := range at {
			all.Go(func() { failed <- s.submit(fmt.Sprint("probe-", round, "-", i), arrived) })
		}
		all.Wait()
		close(failed)
		for err := range failed {
			if err != nil {
				return false
			}
		}
		return true
	})
	s.Logf("recovered %v after the fault; %d calls of the entrance failed", time.Since(since).Round(10*time.Millisecond), s.count(func() int { return s.failures }))
}

var errAstray = errors.New("not at the primary")

// submit goes through the store without a ledger.
func (s *storm) submit(id string, arrived func(idem.Request) bool) error {
	ctx, q := context.Background(), request(id)
	if err := s.store.Issue(ctx, []idem.Token{token(q, "jti")}); err != nil {
		return err
	}
	answer, err := s.store.Spend(ctx, "jti", q)
	if err != nil || answer.Outcome != idem.Won {
		return fmt.Errorf("%v: %w", answer.Outcome, errors.Join(err, errAstray))
	}
	if err := s.store.Complete(ctx, answer.Claim, result); err != nil {
		return err
	}
	if !arrived(q) {
		return errAstray
	}
	return nil
}

// calm sees that recovery lasts, ends the traffic, and sends every operation once more: each was executed once.
func (s *storm) calm() {
	s.Helper()
	s.answered(100) // what began before the recovery may still fail
	before := s.count(func() int { return s.failures })
	s.answered(200)
	if after := s.count(func() int { return s.failures }); after != before {
		s.Errorf("%d calls of the entrance failed after it had recovered", after-before)
	}
	s.end()
	drain(s.T, s.engine)
	for _, call := range s.calls {
		s.send(call)
	}
	drain(s.T, s.engine)
	for _, call := range s.calls {
		if runs := s.runs[call.Key]; runs != 1 {
			s.Errorf("%s was executed %d times", call.RequestID, runs)
		}
	}
	s.Logf("%d operations", len(s.calls))
}
