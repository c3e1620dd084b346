/// Subscriptions whose opening request has no response yet, with the notifications to them, which wait for it. Pure.
struct OpenedSubscriptions {
    private struct Opened {
        var subscriptions: [String] = []
        var held: [OutgoingNotification] = []
    }

    private var openers: [String: UInt64] = [:]
    private var opened: [UInt64: Opened] = [:]

    var isEmpty: Bool { openers.isEmpty }

    mutating func open(_ subscription: String, by sequence: UInt64) {
        openers[subscription] = sequence
        opened[sequence, default: Opened()].subscriptions.append(subscription)
    }

    /// False when it need not wait.
    mutating func hold(_ notification: OutgoingNotification) -> Bool {
        guard !openers.isEmpty, let sequence = openers[notification.subscription] else { return false }
        opened[sequence]?.held.append(notification)
        return true
    }

    /// The response of a request has left: returns the notifications that waited for it, in their order.
    mutating func responded(_ sequence: UInt64) -> [OutgoingNotification] {
        guard let done = opened.removeValue(forKey: sequence) else { return [] }
        for subscription in done.subscriptions { openers[subscription] = nil }
        // An idle connection keeps no memory here.
        if opened.isEmpty { self = OpenedSubscriptions() }
        return done.held
    }
}
