/// What a draft comes to besides its rows.
struct OutboxEffects: Sendable {
    /// Deliveries that were dropped because too many wait, and the user of the last one.
    struct FullDrops: Sendable {
        var count = 0
        var uid = ""
    }

    var pendingChange: Int
    var deadChange: Int
    var events: [OutboxEvent]
    var due: DueTimes
    var dueInQueues: [String: DueTimes]
    var unreadable: [RecordKey]
    var forgottenUnreadable: Int
    var droppedBecauseFull: FullDrops
    var held: [DeliveryStateMachine.Hold: Int]
    /// Whether there is something to withdraw.
    var hasWithdrawals: Bool
    var fanOuts: FanOutChange
}
