// Package redisstream consumes a Redis stream (Redis 6.2 or later) with the verdicts of package consumer.
//
//	points, err := consumer.New(ledger, "points", grantPoints)
//	adapter, err := redisstream.New(rdb, redisstream.Config{Stream: "orders"})
//	err = adapter.Run(ctx, points)                             // until ctx ends
//	id, err := redisstream.Publish(ctx, rdb, "orders", consumer.Message{ID: "order-4711", Body: body})
//
// Every process joins the consumer's group under a random name. An entry stays in the group's pending list until its verdict is carried out, so none is
// lost with a process: the others take over what its owner has not spoken for in Config.MinIdle, and every process speaks for all it has in hand - in work, waiting or
// resting - each third of that. A resting entry (Retry) is held by its process; one that dies hands it on early, never late.
//
// The delivery count of the pending list is kept to what consumer.Message.Delivery means: a Retry that used up no attempt is taken back.
//
// A dead letter is written and its entry acknowledged in one script. A group that is missing, since the stream was deleted or Redis came back empty, is made again from the
// stream's beginning. An entry that is trimmed while it is pending is handled as long as its process lives, which has it in memory, and becomes a dead letter at a graceful
// end; after a crash it is acknowledged and told to the consumer's observer as consumer.ErrNoBody.
//
// Acknowledged entries stay in the stream until somebody trims it: give XADD a MAXLEN, with Fields for the entry, that is longer than any group may lag behind. Dead
// letters have Config.MaxDead.
//
// Redis streams are as durable as Redis is told to be: a producer that must not lose anything needs appendonly and waits for replicas. A primary that fails over
// may forget acknowledgements, and then the ledger answers.
package redisstream
