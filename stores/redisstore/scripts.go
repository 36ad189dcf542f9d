package redisstore

import (
	"context"
	_ "embed" // the scripts below
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
)

var (
	//go:embed lua/record.lua
	recordLua string
	//go:embed lua/judge.lua
	judgeLua string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/spend.lua
	spendLua string
	//go:embed lua/extend.lua
	extendLua string
	//go:embed lua/complete.lua
	completeLua string
	//go:embed lua/release.lua
	releaseLua string
	//go:embed lua/restore.lua
	restoreLua string
	//go:embed lua/lookup.lua
	lookupLua string
	//go:embed lua/issue.lua
	issueLua string
	//go:embed lua/drop.lua
	dropLua string
)

type scripts struct {
	claim, spend, extend, complete, release, restore, lookup, issue, drop *redis.Script
}

func newScripts() scripts {
	return scripts{
		claim:    redis.NewScript(recordLua + judgeLua + claimLua),
		spend:    redis.NewScript(recordLua + judgeLua + spendLua),
		extend:   redis.NewScript(recordLua + extendLua),
		complete: redis.NewScript(recordLua + completeLua),
		release:  redis.NewScript(recordLua + releaseLua),
		restore:  redis.NewScript(recordLua + restoreLua),
		lookup:   redis.NewScript(recordLua + lookupLua),
		issue:    redis.NewScript(issueLua),
		drop:     redis.NewScript(recordLua + dropLua),
	}
}

// invocation is one run of a script: its keys, all in one slot, and its arguments.
type invocation struct {
	keys []string
	args []any
}

func (s *Store) run(ctx context.Context, script *redis.Script, keys []string, args ...any) *redis.Cmd {
	if err := ctx.Err(); err != nil {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(err)
		return cmd
	}
	return script.Run(ctx, s.rdb, keys, args...)
}

// runAll runs one script many times in one round trip (to each node at once, on a cluster), and in a second one whatever met a node that
// does not have the script. Its results are in the order of the invocations.
func (s *Store) runAll(ctx context.Context, script *redis.Script, all []invocation) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(all))
	s.pipeline(ctx, cmds, func(pipe redis.Pipeliner, i int) *redis.Cmd {
		return script.EvalSha(ctx, pipe, all[i].keys, all[i].args...)
	})
	missing := false
	for _, cmd := range cmds {
		missing = missing || redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT")
	}
	if !missing {
		return cmds
	}
	s.pipeline(ctx, cmds, func(pipe redis.Pipeliner, i int) *redis.Cmd {
		if !redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			return cmds[i]
		}
		return script.Eval(ctx, pipe, all[i].keys, all[i].args...)
	})
	return cmds
}

func (s *Store) pipeline(ctx context.Context, cmds []*redis.Cmd, queue func(redis.Pipeliner, int) *redis.Cmd) {
	pipe := s.rdb.Pipeline()
	for i := range cmds {
		cmds[i] = queue(pipe, i)
	}
	// Every command carries its own error; Exec returns only the first.
	_, _ = pipe.Exec(ctx)
}

// arguments are those that the prelude record.lua names. A millisecond is added to the retention, since Redis counts from the
// start of the running one: where it is as long as the lease, the record must not go first.
func arguments(q idem.Request, more ...any) []any {
	return append([]any{
		idem.Format, q.Owner, q.Subject, q.RequestID, q.Fingerprint,
		strconv.FormatInt(roundUp(q.Lease, time.Microsecond), 10), strconv.FormatInt(roundUp(q.Retention, time.Millisecond)+1, 10), q.Ledger, flag(q.Shared),
		encodeKey(q.Key, q.Subject, q.RequestID), flag(q.Exclusive),
	}, more...)
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return ""
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(roundUp(d, time.Millisecond), 10)
}

// roundUp counts units: a record that lives shorter than asked would free its key too early.
func roundUp(d, unit time.Duration) int64 {
	count := int64(d / unit)
	if d%unit > 0 {
		count++
	}
	return count
}
