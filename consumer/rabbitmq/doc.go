// Package rabbitmq runs a consumer on a queue of RabbitMQ 3.10 or later.
//
//	adapter, err := rabbitmq.New(rabbitmq.Config{
//		URL: "amqp://user:secret@broker/shop", Queue: "points",
//		Bindings: []rabbitmq.Binding{{Exchange: "orders", Kind: "topic", Key: "order.created"}}})
//	err = adapter.Run(ctx, points) // a *consumer.Consumer; until ctx ends
//
// # Topology
//
// Unless NoDeclare says that it exists, every connection declares what is missing: the durable quorum queue that is worked on, one resting queue for each
// retry level, and one for the dead letters. All use the default exchange, by their names:
//
//	points            work; what the broker itself gives up (a delivery limit) goes to points.dead
//	points.retry.1s   rests at most one second, then goes back to points; likewise points.retry.4s and so on
//	points.dead       kept until a person takes or deletes it
//
// A message rests on the first level that is as long as its delay, with the delay as its own time to live: it never returns early. It may return as late as
// the level is long, as the broker expires only the head of a queue. Expiry uses RabbitMQ's at-least-once dead lettering: with the default, a broker that
// ends between taking a message from one queue and writing it to the other loses it.
//
// # What is promised
//
// Acknowledgements are manual. What is published (a retry, a dead letter) is mandatory and persistent, and is confirmed by the broker before the original is
// acknowledged; a crash between the two leaves both, and the ledger tells them apart by the message's key. Properties and headers are kept, but for the ones
// that would change the way of the copy: expiration, user id, CC. A resting message has HeaderError, HeaderAttempt and HeaderDelivery in addition.
//
// A broken connection, a cancelled consumer (its queue was deleted) and a publication that was not confirmed end the session: the broker delivers again what
// was not acknowledged, and the adapter connects again, with growing delays. Handlers that run meanwhile go on; the ledger keeps the second delivery of
// their message waiting.
//
// consumer.Message.ID is the message-id property. It is optional in AMQP: give the consumer a KeyFunc where producers leave it out.
package rabbitmq
