package redisstore_test
import ("testing";"context";"fmt";"github.com/redis/go-redis/v9";"github.com/idemkit/idem/internal/testkit")
func BenchmarkHand(b *testing.B) {
	ctx := context.Background()
	rdb := testkit.Redis(b).Client(b)
	spend := redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return redis.call('HGETALL', KEYS[2]) end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[2], 'state','processing','owner',ARGV[2],'attempt','1','subject','alice','fingerprint',ARGV[3])
redis.call('PEXPIRE', KEYS[2], 3600000)
return {'won','1'}`)
	complete := redis.NewScript(`if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state','succeeded','status','201','result',ARGV[2])
redis.call('PEXPIRE', KEYS[1], 3600000)
return 1`)
	for i := range b.N {
		q := request(fmt.Sprint(b.N, i))
		k := recordKey(q.Key)
		rdb.Set(ctx, k+"t", "rid", 60e9)
		if err := spend.Run(ctx, rdb, []string{k+"t", k}, "rid", q.Owner, q.Fingerprint).Err(); err != nil { b.Fatal(err) }
		if err := complete.Run(ctx, rdb, []string{k}, q.Owner, result.Body).Err(); err != nil { b.Fatal(err) }
	}
	b.Log(rdb.Info(ctx, "commandstats").Val())
}
