package server

import (
	"cmp"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A Redis that is away must not hold requests up: the ledger decides without it. go-redis' own defaults would take five seconds and five
// attempts for each connection. All of these but the last can be given in the URL.
const (
	redisDial       = time.Second
	redisReply      = time.Second
	redisPool       = 2 * time.Second // waiting for a connection
	redisRetries    = 1
	redisMinBackoff = 8 * time.Millisecond
	redisMaxBackoff = 128 * time.Millisecond

	// At go-redis' sixty seconds a cluster's client asks a dead primary for as long.
	redisClusterReload = time.Second
)

// client opens no connection. Nil: no Redis.
func (t redisTarget) client() redis.UniversalClient {
	if len(t.addrs) == 0 {
		return nil
	}
	o := t.bounded()
	switch {
	case t.master != "":
		return redis.NewFailoverClient(t.failover(o))
	case len(t.addrs) > 1:
		return redis.NewClusterClient(t.cluster(o))
	}
	return redis.NewClient(o)
}

// bounded are the options with our time-outs where the URL gives none.
func (t redisTarget) bounded() *redis.Options {
	o := *t.options
	o.DialTimeout = cmp.Or(o.DialTimeout, redisDial)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, redisReply)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, redisReply)
	o.PoolTimeout = cmp.Or(o.PoolTimeout, redisPool)
	o.MaxRetries = cmp.Or(o.MaxRetries, redisRetries)
	o.MinRetryBackoff = cmp.Or(o.MinRetryBackoff, redisMinBackoff)
	o.MaxRetryBackoff = cmp.Or(o.MaxRetryBackoff, redisMaxBackoff)
	o.DialerRetries = cmp.Or(o.DialerRetries, 1)
	o.ContextTimeoutEnabled = true
	// The handshake for these is for Redis Enterprise alone.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

func (t redisTarget) cluster(o *redis.Options) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs: t.addrs, ClientName: o.ClientName, Protocol: o.Protocol, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		ClusterStateReloadInterval: redisClusterReload,
		DialTimeout:                o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolTimeout: o.PoolTimeout,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff, DialerRetries: o.DialerRetries,
		PoolSize: o.PoolSize, PoolFIFO: o.PoolFIFO, MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns,
		MaxActiveConns: o.MaxActiveConns, ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
		ContextTimeoutEnabled: true, MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

func (t redisTarget) failover(o *redis.Options) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: t.master, SentinelAddrs: t.addrs, SentinelUsername: t.sentinelUsername, SentinelPassword: t.sentinelPassword,
		ClientName: o.ClientName, Protocol: o.Protocol, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolTimeout: o.PoolTimeout,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff, DialerRetries: o.DialerRetries,
		PoolSize: o.PoolSize, PoolFIFO: o.PoolFIFO, MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns,
		MaxActiveConns: o.MaxActiveConns, ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
		ContextTimeoutEnabled: true,
	}
}
