// Gets every notification to its devices at least once.
//
// Triggers/ `CompiledTrigger` decides (pure) what a change means; `TriggerFeeds` follows the feed of each database
//            that has triggers and accepts what they make, the cursor in the same transaction.
// Outbox/ `Outbox` writes every step of a delivery durably; `DeliveryStateMachine` and `BackoffPolicy` decide (pure)
//            what the step is; `Dispatcher` leases what is due at webhooks and browsers, has it sent, and sleeps until
//            the next is due; a `QueueDispatcher` does so for each app at each of APNs and FCM.
// Mail/ what e-mails gather of a thread, and when they go: rows of `DigestRecord` beside those of the outbox.
// Records/ the rows and their keys. Apps/ credentials. Methods/ the requests of the model.
//
// Actors: `TriggerFeeds` (one follower task for each database), `Dispatcher` and `QueueDispatcher` (the attempts), the
// `ResultWriter` (results that wait for their transaction), `Sweeper` (the age of rows and devices). Everything else is
// values and transactions.
//
// The order that makes "at least once" true: a notification is durable before the response to `send`, or the move of
// the cursor; a lease is durable before its attempt; the result is durable before the next of the lane is leased. A
// crash between a receiver's answer and its record sends the same delivery again, with the same `webhook-id`.
