package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
)

// page is how many keys, of whatever kind, Redis looks at in one step of a scan: it serves nobody else meanwhile, for well under a millisecond.
const page = 1000

// Scan implements idem.TokenStore: two round trips for each thousand keys of each primary, one after the other. visit may use the store.
//
// Left out are records of a newer format, and those last written by a version before the key's parts were kept: a digest does not tell its key. They show
// up once this version claims or restores them, at the latest when their retention is over and new ones have taken their place. A record may be visited twice
// where Redis shrinks its table meanwhile. Where a cluster moves slots, the scan may end with the MOVED or ASK error of one that was on the move;
// those that it moves whole, between two steps, may be missed. A former primary is refused with READONLY.
func (s *Store) Scan(ctx context.Context, visit func(r idem.Record, ledger string) error) error {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return wrap(ctx, "scan", err)
	}
	for _, node := range nodes {
		if err := s.scanNode(ctx, node, visit); err != nil {
			return err
		}
	}
	return nil
}

// primaries are the nodes that hold the keys between them.
func (s *Store) primaries(ctx context.Context) ([]redis.Cmdable, error) {
	var lock sync.Mutex
	var nodes []redis.Cmdable
	collect := func(_ context.Context, node *redis.Client) error {
		lock.Lock()
		defer lock.Unlock()
		nodes = append(nodes, node)
		return nil
	}
	switch rdb := s.rdb.(type) {
	case interface {
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	}:
		return nodes, rdb.ForEachMaster(ctx, collect)
	case interface {
		ForEachShard(context.Context, func(context.Context, *redis.Client) error) error
	}:
		return nodes, rdb.ForEachShard(ctx, collect)
	}
	return []redis.Cmdable{s.rdb}, nil
}

func (s *Store) scanNode(ctx context.Context, node redis.Cmdable, visit func(idem.Record, string) error) error {
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s.prefix) + ":1:{*}:r"
	for cursor := uint64(0); ; {
		if err := ctx.Err(); err != nil {
			return wrap(ctx, "scan", err)
		}
		keys, next, err := node.Scan(ctx, cursor, pattern, page).Result()
		if err != nil {
			return wrap(ctx, "scan", err)
		}
		seen, err := s.read(ctx, node, keys)
		if err != nil {
			return wrap(ctx, "scan", err)
		}
		for _, r := range seen {
			if err := visit(r.Record, r.ledger); err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// scanned is a record and the ledger that decides about it.
type scanned struct {
	idem.Record
	ledger string
}

// read reads the records under the keys in one round trip, all by the same clock, and leaves out what cannot be read as a record.
func (s *Store) read(ctx context.Context, node redis.Cmdable, keys []string) ([]scanned, error) {
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return s.digest(key) == "" })
	if len(keys) == 0 {
		return nil, nil
	}
	pipe := node.Pipeline()
	// Deletes nothing, but makes sure of a primary; see primarys in record.lua.
	writable, clock := pipe.HDel(ctx, keys[0], ""), pipe.Time(ctx)
	fields := make([]*redis.SliceCmd, len(keys))
	for i, key := range keys {
		fields[i] = pipe.HMGet(ctx, key, "format", "state", "attempt", "owner", "subject", "request_id", "fingerprint", "lease", "status", "ledger", "key")
	}
	// Every command carries its own error; Exec returns only the first.
	_, _ = pipe.Exec(ctx)
	if err := unlessWrongType(writable.Err()); err != nil {
		return nil, err
	}
	now, err := clock.Result()
	if err != nil {
		return nil, err
	}
	var found []scanned
	for i, cmd := range fields {
		if err := unlessWrongType(cmd.Err()); err != nil {
			return nil, err
		}
		if r, ok := scan(cmd.Val(), s.digest(keys[i]), now); ok {
			found = append(found, r)
		}
	}
	return found, nil
}

// unlessWrongType ignores that a value is not a hash: whosever it is, it is no record.
func unlessWrongType(err error) error {
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil
	}
	return err
}

// digest is the key's digest in the name of a record's key, empty where the name is another's: a token's may end like a record's.
func (s *Store) digest(name string) string {
	digest, front := strings.CutPrefix(name, s.prefix+":1:{")
	digest, back := strings.CutSuffix(digest, "}:r")
	if !front || !back || len(digest) != len(idem.Key{}.Digest()) {
		return ""
	}
	return digest
}

// scan reads the fields in the order in which read asks for them.
func scan(values []any, digest string, now time.Time) (scanned, bool) {
	var f [11]string
	for i := range min(len(f), len(values)) {
		f[i], _ = values[i].(string)
	}
	key, known := decodeKey(f[10], f[4], f[5], digest)
	format, err := strconv.Atoi(f[0])
	if !known || err != nil || format > idem.Format {
		return scanned{}, false
	}
	left := int64(0)
	if lease, err := strconv.ParseInt(f[7], 10, 64); err == nil && lease > 0 {
		left = lease - now.UnixMicro()
	}
	status := f[8]
	if status == "" {
		status = "0"
	}
	r, err := record(key, []string{f[1], f[2], f[3], f[4], f[5], f[6], strconv.FormatInt(left, 10), status, "", "", "0"})
	if r.State != idem.Processing {
		r.LeaseLeft = 0
	}
	return scanned{Record: r, ledger: f[9]}, err == nil
}
