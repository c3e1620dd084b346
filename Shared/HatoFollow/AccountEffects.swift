public import HatoModel

/// What a service does about the changes that `auth.follow` sends.
///
/// Its state and the position of the last event that it has handled are durable together. Every event is handled at
/// least once, in order.
public protocol AccountEffects: Sendable {
    /// The position of the last event that was handled; nil before the first, and after `missed` was interrupted.
    ///
    /// - Throws: the errors of the store.
    func position() async throws -> AccountPosition?

    /// Whether the events that auth keeps are to be handled before the first position: else `missed` is called.
    var beginsAtOldest: Bool { get }

    /// An event has come; `handle` is called with it later. Never waits.
    func received(_ event: Auth.Event)

    /// Events before `start` are lost: brings the state up to date by other means, then keeps the position.
    ///
    /// - Throws: what prevented it; it is called again.
    func missed(until start: AccountStart) async throws

    /// Handles events, and keeps the position of the last.
    ///
    /// - Throws: what prevented it; they come again.
    func handle(_ events: [Auth.Event]) async throws
}

extension AccountEffects {
    public func received(_ event: Auth.Event) {}
}

/// Where following began.
public struct AccountStart: Sendable, Hashable {
    /// Behind what was before.
    public var position: AccountPosition
    /// The time of auth then, in milliseconds since 1970.
    public var time: Int64

    public init(_ position: AccountPosition, time: Int64) {
        self.position = position
        self.time = time
    }
}

/// A position in the events of auth.
public struct AccountPosition: FieldObject, Hashable {
    /// The `position` of the last event that was handled.
    public var number: Int
    /// The history of it.
    public var epoch: String

    public static let fields = Fields<Self>(
        blank: Self(0, epoch: ""), .required("number", \.number), .required("epoch", \.epoch))

    public init(_ number: Int, epoch: String) {
        self.number = number
        self.epoch = epoch
    }
}
