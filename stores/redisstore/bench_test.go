package redisstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/redisstore"
)

// One guarded submission: a token issued, spent and finished; beside it three commands that do nothing.
func BenchmarkSubmission(b *testing.B) {
	ctx := context.Background()
	rdb := testkit.Redis(b).Client(b)
	store := redisstore.New(rdb, redisstore.Options{})
	b.Run("idem", func(b *testing.B) {
		for i := range b.N {
			q := request(fmt.Sprint(b.N, i))
			if err := store.Issue(ctx, []idem.Token{token(q, "jti")}); err != nil {
				b.Fatal(err)
			}
			answer, err := store.Spend(ctx, "jti", q)
			if err != nil || answer.Outcome != idem.Won {
				b.Fatal(answer.Outcome, err)
			}
			if err := store.Complete(ctx, answer.Claim, result); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("three pings", func(b *testing.B) {
		for range b.N {
			for range 3 {
				if err := rdb.Ping(ctx).Err(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("issue of 32", func(b *testing.B) {
		tokens := make([]idem.Token, 32)
		for i := range tokens {
			tokens[i] = token(request(fmt.Sprint(i)), "jti")
		}
		for range b.N {
			if err := store.Issue(ctx, tokens); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Log(rdb.Info(ctx, "commandstats").Val())
}
