package server

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redisTarget is what IDEM_REDIS_URL names; without addresses: no Redis.
type redisTarget struct {
	addrs   []string       // "host:port": one server, several nodes of a cluster, or the sentinels
	options *redis.Options // user, database, TLS and go-redis' own parameters; its Addr is the first of addrs
	master  string         // the name that the sentinels know; empty: no sentinels

	sentinelUsername, sentinelPassword string
}

// What is wrong with the URL. No text shows any part of it, nor does any wrap an error that would: url.Parse quotes the whole.
var (
	errRedisScheme    = errors.New("is not a Redis URL: it begins with none of redis://, rediss:// and redis+sentinel://")
	errRedisMixed     = errors.New("is not a Redis URL: its addresses differ in user, password, database or parameters")
	errRedisHost      = errors.New("is not a Redis URL: an address is not host:port, or has another scheme than the first")
	errRedisDatabase  = errors.New("is not a Redis URL: the database or a parameter is not one that go-redis knows")
	errRedisClusterDB = errors.New("is not the URL of a Redis cluster: it names several addresses and a database, and a cluster has only number 0")
	errRedisMaster    = errors.New("is not a Redis URL: behind the sentinels' addresses there must be the master's name, then at most a database number")
)

const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

func parseRedis(text string) (redisTarget, error) {
	if text == "" {
		return redisTarget{}, nil
	}
	scheme, _, ok := strings.Cut(text, "://")
	base, sentinels := strings.CutSuffix(scheme, "+sentinel")
	if !ok || (base != "redis" && base != "rediss") {
		return redisTarget{}, errRedisScheme
	}
	list, err := splitAddresses(text, scheme+"://", sentinels)
	if err != nil {
		return redisTarget{}, err
	}
	target := redisTarget{addrs: list.addrs}
	tail := list.tail
	if sentinels {
		if tail, err = target.takeSentinels(tail); err != nil {
			return redisTarget{}, err
		}
	}
	target.options, err = redis.ParseURL(base + "://" + list.user + list.addrs[0] + tail)
	switch {
	case err != nil, target.options.DB < 0:
		return redisTarget{}, errRedisDatabase
	case !sentinels && len(list.addrs) > 1 && target.options.DB != 0:
		return redisTarget{}, errRedisClusterDB
	}
	return target, nil
}

// addressList is a comma-separated list taken apart. user ends in "@" and tail begins with "/" or "?", or they are empty.
type addressList struct {
	addrs      []string
	user, tail string
}

// splitAddresses takes both ways to write a list: whole URLs, and one URL with several hosts. What they all have in common may stand at any of them.
func splitAddresses(text, scheme string, sentinels bool) (addressList, error) {
	port := redisPort
	if sentinels {
		port = sentinelPort
	}
	var list addressList
	for item := range strings.SplitSeq(text, ",") {
		host, tail := strings.TrimPrefix(strings.TrimSpace(item), scheme), ""
		if at := strings.IndexAny(host, "/?"); at >= 0 {
			host, tail = host[:at], host[at:]
		}
		at := strings.LastIndexByte(host, '@') + 1
		if !common(&list.user, host[:at]) || !common(&list.tail, tail) {
			return addressList{}, errRedisMixed
		}
		addr, ok := hostPort(host[at:], port)
		if !ok {
			return addressList{}, errRedisHost
		}
		list.addrs = append(list.addrs, addr)
	}
	return list, nil
}

// common keeps the first part that is given, and reports whether the others are the same.
func common(kept *string, part string) bool {
	if *kept == "" {
		*kept = part
	}
	return part == "" || part == *kept
}

// hostPort completes a host with the port. A host that ends in a colon is what another scheme leaves of itself.
func hostPort(host, port string) (string, bool) {
	u, err := url.Parse("redis://" + host)
	if err != nil || u.Hostname() == "" || u.Host != host || strings.HasSuffix(host, ":") {
		return "", false
	}
	if given := u.Port(); given != "" {
		port = given
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return net.JoinHostPort(u.Hostname(), port), err == nil
}

// takeSentinels takes from the tail what go-redis' URL has no place for, and returns the rest.
func (t *redisTarget) takeSentinels(tail string) (string, error) {
	u, err := url.Parse(tail)
	if err != nil {
		return "", errRedisMaster
	}
	name, database, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if name == "" {
		return "", errRedisMaster
	}
	query := u.Query()
	t.master = name
	t.sentinelUsername, t.sentinelPassword = query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	return "/" + database + "?" + query.Encode(), nil
}
