package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem/internal/testkit"
)

func TestParseRedis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url    string
		addrs  []string
		master string
		holds  func(redisTarget) bool
		err    error
	}{
		"none":          {},
		"host alone":    {url: "redis://cache", addrs: []string{"cache:6379"}},
		"IPv6":          {url: "redis://[::1]:7000/2", addrs: []string{"[::1]:7000"}, holds: func(r redisTarget) bool { return r.options.DB == 2 }},
		"user, pass":    {url: "redis://u:p%2Cq@h:1", addrs: []string{"h:1"}, holds: func(r redisTarget) bool { return r.options.Username == "u" && r.options.Password == "p,q" }},
		"password only": {url: "redis://:p@h", addrs: []string{"h:6379"}, holds: func(r redisTarget) bool { return r.options.Username == "" && r.options.Password == "p" }},
		"TLS":           {url: "rediss://h:1", addrs: []string{"h:1"}, holds: func(r redisTarget) bool { return r.options.TLSConfig.ServerName == "h" }},
		"own time-out": {
			url: "redis://h?read_timeout=3s&pool_size=7", addrs: []string{"h:6379"},
			holds: func(r redisTarget) bool {
				o := r.bounded()
				return o.ReadTimeout == 3*time.Second && o.PoolSize == 7 && o.DialTimeout == redisDial
			},
		},
		"cluster, one URL":   {url: "redis://u:p@a:1,b:2,c", addrs: []string{"a:1", "b:2", "c:6379"}, holds: func(r redisTarget) bool { return r.options.Password == "p" }},
		"cluster, whole URL": {url: "rediss://u:p@a:1, rediss://u:p@b:2", addrs: []string{"a:1", "b:2"}, holds: func(r redisTarget) bool { return r.options.TLSConfig != nil }},
		"cluster, database 0 and a parameter": {
			url: "redis://a,b/0?pool_size=5", addrs: []string{"a:6379", "b:6379"}, holds: func(r redisTarget) bool { return r.options.PoolSize == 5 },
		},
		"sentinels": {
			url: "redis+sentinel://u:p@s1,s2:1/shop/3?sentinel_username=su&sentinel_password=sp&pool_size=9", addrs: []string{"s1:26379", "s2:1"}, master: "shop",
			holds: func(r redisTarget) bool {
				o := r.failover(r.bounded())
				return o.DB == 3 && o.Username == "u" && o.Password == "p" && o.SentinelUsername == "su" && o.SentinelPassword == "sp" && o.PoolSize == 9
			},
		},
		"sentinels over TLS":           {url: "rediss+sentinel://s1/shop", addrs: []string{"s1:26379"}, master: "shop", holds: func(r redisTarget) bool { return r.options.TLSConfig != nil }},
		"no scheme":                    {url: "h:6379", err: errRedisScheme},
		"another scheme":               {url: "memcached://h", err: errRedisScheme},
		"schemes differ":               {url: "redis://a,rediss://b", err: errRedisHost},
		"passwords differ":             {url: "redis://:p@a,:q@b", err: errRedisMixed},
		"databases differ":             {url: "redis://a/1,redis://b/2", err: errRedisMixed},
		"cluster with a database":      {url: "redis://a,b/1", err: errRedisClusterDB},
		"no host":                      {url: "redis://", err: errRedisHost},
		"empty address in the list":    {url: "redis://a,,b", err: errRedisHost},
		"port out of range":            {url: "redis://a:70000", err: errRedisHost},
		"port not a number":            {url: "redis://a:p", err: errRedisHost},
		"database not a number":        {url: "redis://a/x", err: errRedisDatabase},
		"database negative":            {url: "redis://a/-1", err: errRedisDatabase},
		"unknown parameter":            {url: "redis://a?colour=red", err: errRedisDatabase},
		"sentinels without a master":   {url: "redis+sentinel://s1", err: errRedisMaster},
		"sentinels with an odd ending": {url: "redis+sentinel://s1/shop/x", err: errRedisDatabase},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseRedis(c.url)
			if !errors.Is(err, c.err) || !slices.Equal(got.addrs, c.addrs) && err == nil || got.master != c.master {
				t.Fatalf("%v %q, %v", got.addrs, got.master, err)
			}
			if c.holds != nil && !c.holds(got) {
				t.Errorf("%+v", got.options)
			}
		})
	}
}

// What go-redis' own URL parser takes must reach the clients of clusters and sentinels too.
func TestRedisOptionsAreCarriedOver(t *testing.T) {
	t.Parallel()
	const parameters = "?client_name=n&protocol=2&max_retries=5&min_retry_backoff=2s&max_retry_backoff=3s&dial_timeout=4s&read_timeout=5s&write_timeout=6s" +
		"&pool_timeout=7s&pool_size=8&min_idle_conns=2&max_idle_conns=3&max_active_conns=9&conn_max_idle_time=10s&conn_max_lifetime=11s"
	show := func(v ...any) string { return fmt.Sprint(v...) }
	want := show("n", 2, 5, 2*time.Second, 3*time.Second, 4*time.Second, 5*time.Second, 6*time.Second, 7*time.Second, 8, 2, 3, 9, 10*time.Second, 11*time.Second, true)
	for name, c := range map[string]struct {
		url string
		got func(redisTarget) string
	}{
		"one server": {"redis://a" + parameters, func(r redisTarget) string {
			o := r.bounded()
			return show(o.ClientName, o.Protocol, o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout,
				o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.ConnMaxIdleTime, o.ConnMaxLifetime, o.ContextTimeoutEnabled)
		}},
		"cluster": {"redis://a,b" + parameters, func(r redisTarget) string {
			o := r.cluster(r.bounded())
			return show(o.ClientName, o.Protocol, o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout,
				o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.ConnMaxIdleTime, o.ConnMaxLifetime, o.ContextTimeoutEnabled)
		}},
		"sentinels": {"redis+sentinel://a/shop" + parameters, func(r redisTarget) string {
			o := r.failover(r.bounded())
			return show(o.ClientName, o.Protocol, o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout,
				o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.ConnMaxIdleTime, o.ConnMaxLifetime, o.ContextTimeoutEnabled)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, err := parseRedis(c.url)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.got(target); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// ping makes one call on a client of the URL.
func ping(t *testing.T, url string) (redis.UniversalClient, error) {
	t.Helper()
	target, err := parseRedis(url)
	if err != nil {
		t.Fatal(err)
	}
	client := target.client()
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return client, client.Set(ctx, "k", "v", time.Minute).Err()
}

func TestRedisServerByPassword(t *testing.T) {
	t.Parallel()
	// testkit's own client has no password to see that it answers, so the server gets it afterwards.
	server := testkit.Redis(t)
	open, err := ping(t, "redis://"+server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := open.ConfigSet(t.Context(), "requirepass", "p,q").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := ping(t, "redis://:wrong@"+server.Addr); err == nil {
		t.Error("a wrong password was taken")
	}
	if _, err := ping(t, "redis://:p%2Cq@"+server.Addr+"/3"); err != nil {
		t.Error(err)
	}
}

func TestRedisCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.Cluster(t, 3)
	client, err := ping(t, "redis://"+cluster.Nodes[0].Addr+","+cluster.Nodes[1].Addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := client.(*redis.ClusterClient); !ok {
		t.Errorf("%T", client)
	}
}

func TestRedisSentinel(t *testing.T) {
	t.Parallel()
	primary, port := testkit.Redis(t), strconv.Itoa(testkit.FreePort(t))
	host, at, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor shop %s %s 1\n", port, host, at)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Start(t, exec.Command(testkit.Binary(t, "redis-server", "redis-server"), settings, "--sentinel"), syscall.SIGTERM)
	testkit.Eventually(t, 20*time.Second, "the primary is found", func() bool {
		_, err := ping(t, "redis+sentinel://127.0.0.1:"+port+"/shop/2")
		return err == nil
	})
	options := testkit.RedisOptions(primary.Addr)
	options.DB = 2
	if kept, err := testkit.RedisClient(t, options).Get(t.Context(), "k").Result(); err != nil || kept != "v" {
		t.Errorf("in database 2: %q, %v", kept, err)
	}
}

// A Redis that is away must cost a request little: there is a ledger that decides.
func TestRedisAwayFailsQuickly(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(t *testing.T) string{
		"nobody listens": func(t *testing.T) string { return "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t)) },
		"frozen": func(t *testing.T) string {
			server := testkit.Redis(t)
			if err := server.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Signal(syscall.SIGCONT) })
			return server.Addr
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			if _, err := ping(t, "redis://"+away(t)); err == nil {
				t.Fatal("it answered")
			}
			// Two attempts of a second each, and slack for a busy machine.
			if took := time.Since(begun); took > 6*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}
