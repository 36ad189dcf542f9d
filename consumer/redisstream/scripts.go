package redisstream

import (
	"context"
	_ "embed" // the scripts below
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/take.lua
	takeLua string
	//go:embed lua/again.lua
	againLua string
	//go:embed lua/beat.lua
	beatLua string
	//go:embed lua/bury.lua
	buryLua string
	//go:embed lua/leave.lua
	leaveLua string
)

type scripts struct{ take, again, beat, bury, leave *redis.Script }

func newScripts() scripts {
	return scripts{
		take: redis.NewScript(takeLua), again: redis.NewScript(againLua), beat: redis.NewScript(beatLua),
		bury: redis.NewScript(buryLua), leave: redis.NewScript(leaveLua),
	}
}

// run runs a script whose first two arguments are the group and this process' name in it.
func (r *run) script(ctx context.Context, s *redis.Script, args ...any) *redis.Cmd {
	return s.Run(ctx, r.rdb, []string{r.config.Stream}, append([]any{r.config.Group, r.name}, args...)...)
}

// delivered is one element of take's answer.
type delivered struct {
	id         string
	deliveries int64
	fields     map[string]string // empty: the entry was trimmed
}

func parseTaken(list []any) ([]delivered, error) {
	taken := make([]delivered, 0, len(list))
	for _, element := range list {
		entry, _ := element.([]any)
		if len(entry) != 3 {
			return nil, fmt.Errorf("redisstream: unexpected entry %v", element)
		}
		var d delivered
		d.id, _ = entry[0].(string)
		d.deliveries, _ = entry[1].(int64)
		d.fields = pairs(entry[2])
		taken = append(taken, d)
	}
	return taken, nil
}

// pairs reads a flat list of names and values.
func pairs(reply any) map[string]string {
	flat, _ := reply.([]any)
	fields := make(map[string]string, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		name, _ := flat[i].(string)
		fields[name], _ = flat[i+1].(string)
	}
	return fields
}

// texts are go-redis' values, which are strings in truth.
func texts(values map[string]any) map[string]string {
	fields := make(map[string]string, len(values))
	for name, value := range values {
		fields[name] = fmt.Sprint(value)
	}
	return fields
}
