package redisstore_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// losing is a hook that loses the reply of the first command of each call, once, by a proxy between client and server.
type losing struct {
	link   *testkit.Link
	client *redis.Client
	mu     *sync.Mutex
	lost   *atomic.Int64
}

// inside marks the commands that a call of ours brings about: its repetitions and the handshakes of its connections.
type inside struct{}

// lossy returns a client that applies every command and loses its first reply; go-redis then repeats it on a new connection.
func lossy(t testing.TB, addr string) (rdb *redis.Client, lost *atomic.Int64) {
	t.Helper()
	link := testkit.Proxy(t, addr)
	options := testkit.RedisOptions(link.Addr())
	options.PoolSize = 1
	rdb = testkit.RedisClient(t, options)
	lost = new(atomic.Int64)
	rdb.AddHook(losing{link: link, client: rdb, mu: new(sync.Mutex), lost: lost})
	return rdb, lost
}

// apply makes sure that there is a connection, so that the reply lost is not that of its handshake.
func (l losing) apply(ctx context.Context, next func(context.Context) error) error {
	if ctx.Value(inside{}) != nil {
		return next(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx = context.WithValue(ctx, inside{}, true)
	if err := l.client.Ping(ctx).Err(); err != nil {
		return err
	}
	l.link.DropReplies(1)
	defer l.link.DropReplies(0)
	l.lost.Add(1)
	return next(ctx)
}

func (l losing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return l.apply(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

func (l losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return l.apply(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

// timeless drops what depends on when it was asked.
func timeless(answer any) any {
	switch a := answer.(type) {
	case idem.Answer:
		a.Record.LeaseLeft = 0
		return a
	case idem.Record:
		a.LeaseLeft = 0
		return a
	}
	return answer
}

// Each command's reply is lost in turn and the command repeated by go-redis: answer and state are those of a run in which nothing was lost.
func TestLostReplyChangesNothing(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			server, ctx, q := testkit.Redis(t), context.Background(), request("r-00000001")
			direct := server.Client(t)
			run := func(rdb *redis.Client) (any, map[string]map[string]string, error) {
				server.FlushAll(t)
				op.prepare(t, redisstore.New(direct, redisstore.Options{}), q)
				answer, err := op.call(ctx, redisstore.New(rdb, redisstore.Options{}), q)
				return timeless(answer), withoutOwners(state(t, direct)), err
			}
			wantAnswer, wantState, wantErr := run(direct)
			rdb, lost := lossy(t, server.Addr)
			gotAnswer, gotState, gotErr := run(rdb)
			if lost.Load() == 0 {
				t.Fatal("no reply was lost")
			}
			if !reflect.DeepEqual(ownerless(gotAnswer), ownerless(wantAnswer)) || !errors.Is(gotErr, wantErr) {
				t.Errorf("answer %+v, %v\nwant   %+v, %v", gotAnswer, gotErr, wantAnswer, wantErr)
			}
			if !reflect.DeepEqual(gotState, wantState) {
				t.Errorf("state %v\nwant  %v", gotState, wantState)
			}
		})
	}
}

func ownerless(answer any) any {
	switch a := answer.(type) {
	case idem.Answer:
		a.Record.Owner = ""
		return a
	case idem.Record:
		a.Owner = ""
		return a
	}
	return answer
}

// withoutOwners: every run has other owners.
func withoutOwners(all map[string]map[string]string) map[string]map[string]string {
	for _, fields := range all {
		delete(fields, "owner")
	}
	return all
}

// The link loses every reply for good: the caller gets an error that is none of the contract's and, asking again later, the answer that was lost.
func TestCallerRepeatsAfterError(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			server, ctx, q := testkit.Redis(t), context.Background(), request("r-00000001")
			direct := redisstore.New(server.Client(t), redisstore.Options{})
			op.prepare(t, direct, q)
			link := testkit.Proxy(t, server.Addr)
			store := redisstore.New(testkit.RedisClient(t, testkit.RedisOptions(link.Addr())), redisstore.Options{})

			must(t, store.Ping(ctx))
			link.DropReplies(-1)
			if _, err := op.call(ctx, store, q); err == nil || documented(err) {
				t.Fatalf("error %v while every reply is lost", err)
			}
			link.DropReplies(0)
			first, err := op.call(ctx, store, q)
			again, repeated := op.call(ctx, direct, q)
			if !reflect.DeepEqual(timeless(first), timeless(again)) || !errors.Is(repeated, err) {
				t.Errorf("answers %+v, %v and %+v, %v", first, err, again, repeated)
			}
			if answer, claims := first.(idem.Answer); claims && answer.Outcome == idem.Won && answer.Claim.Attempt > 2 {
				t.Errorf("attempt %d: a repetition counted", answer.Claim.Attempt)
			}
		})
	}
}

func documented(err error) bool {
	for _, known := range []error{idem.ErrInvalid, idem.ErrNotFound, idem.ErrFormat, idem.ErrClaimLost} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func TestScriptFlushBetweenAnyTwoCalls(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			store, rdb := open(t)
			ctx, q := context.Background(), request("r-00000001")
			op.prepare(t, store, q)
			for range 2 {
				must(t, rdb.ScriptFlush(ctx).Err())
				if _, err := op.call(ctx, store, q); err != nil && !documented(err) {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			server, ctx, q := testkit.Redis(t), context.Background(), request("r-00000001")
			store := redisstore.New(server.Client(t), redisstore.Options{})
			op.prepare(t, store, q)
			server.Kill()
			_, err := op.call(ctx, store, q)
			var network net.Error
			if err == nil || documented(err) || !errors.As(err, &network) {
				t.Errorf("error %v", err)
			}
			if store.Ping(ctx) == nil {
				t.Error("a dead Redis answers Ping")
			}
		})
	}
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	server, q := testkit.Redis(t), request("r-00000001")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, op := range operations() {
		t.Run("before "+op.name, func(t *testing.T) {
			t.Parallel()
			store := redisstore.New(server.Client(t), redisstore.Options{Prefix: op.name})
			if _, err := op.call(cancelled, store, q); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		})
		t.Run("during "+op.name, func(t *testing.T) {
			t.Parallel()
			link := testkit.Proxy(t, server.Addr)
			store := redisstore.New(testkit.RedisClient(t, testkit.RedisOptions(link.Addr())), redisstore.Options{Prefix: op.name + "2"})
			op.prepare(t, store, q)
			link.Latency(time.Hour)
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			if _, err := op.call(ctx, store, q); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// IdempotentAPI#23: a slow Redis let several run.
func TestLatencyLetsOneRun(t *testing.T) {
	t.Parallel()
	server, ctx, q := testkit.Redis(t), context.Background(), request("r-00000001")
	link := testkit.Proxy(t, server.Addr)
	link.Latency(20 * time.Millisecond)
	store := redisstore.New(testkit.RedisClient(t, testkit.RedisOptions(link.Addr())), redisstore.Options{})
	must(t, store.Issue(ctx, []idem.Token{token(q, "jti")}))
	var won, busy atomic.Int64
	var racers sync.WaitGroup
	for range 24 {
		racers.Go(func() {
			answer, err := store.Spend(ctx, "jti", by(q))
			switch {
			case err != nil:
				t.Error(err)
			case answer.Outcome == idem.Won:
				won.Add(1)
			case answer.Outcome == idem.Busy:
				busy.Add(1)
			}
		})
	}
	racers.Wait()
	if won.Load() != 1 || busy.Load() != 23 {
		t.Errorf("%d won, %d busy", won.Load(), busy.Load())
	}
}
