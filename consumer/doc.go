// Package consumer makes the work behind a message happen once, however often the broker delivers it: a message goes in, a verdict comes out.
//
//	points, err := consumer.New(ledger, "points", grantPoints)
//	queue := consumer.NewQueue("orders")     // or an adapter: consumer/rabbitmq, consumer/redisstream
//	go queue.Run(ctx, points)
//	queue.Publish(ctx, consumer.Message{ID: "order-4711", Body: body})
//
// Redelivery is the normal case. Every delivery claims a record in the ledger, under the consumer's name and the message's key, before the handler
// runs, and the record becomes done only with the handler's success: a message is never marked first. What follows from it:
//
//   - Two consumers of one message have two records. Both run.
//   - A message that was handled before is acknowledged, and the handler is not called. One with its id and another body is a dead letter
//     then; while the first has failed, the later body counts.
//   - A process that is killed leaves its claim behind. When the lease ends, the next delivery is the next attempt.
//   - A failure ends the claim with the error's text; the message comes again after a delay that doubles with each attempt.
//   - A message that used up its attempts goes, with its headers and the last error, to where the broker keeps dead letters.
//   - While the ledger is away, or another process works on the message, it comes again later, and no attempt is counted.
//
// By default the claim is committed first and the handler may write in the ledger's own transaction (pgstore.Tx), which commits together with the
// record. With SameTx all three are one transaction. Effects elsewhere happen at least once after a crash: hand idem.FromContext(ctx).OutboundKey()
// to whoever can recognise it.
//
// A dead letter that is put back, with its headers, has all its attempts again.
package consumer
