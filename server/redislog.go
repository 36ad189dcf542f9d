package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogRedis sends what go-redis says on its own, a line for each attempt to connect, to the logger at debug level instead of to standard error. That is a
// setting of the whole process: a program's main calls it once, first of all, and no library does. The guard logs by itself when Redis is away.
func LogRedis(logger *slog.Logger) { redis.SetLogger(redisLog{logger}) }

type redisLog struct{ logger *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.logger.DebugContext(ctx, "redis: "+fmt.Sprintf(format, v...))
}
