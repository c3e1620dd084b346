public import HatoModel
import HatoRPC
public import HatoStorage

/// An event that a service records with the commit that caused it, and sends to its followers with the members of its
/// record.
public protocol RecordedEvent: FieldObject {
    /// The notification with which it is sent.
    static var method: String { get }
    /// The notification that ends a follower.
    static var endMethod: String { get }
}

extension RecordedEvent {
    /// Records events with the commit of a transaction, which may call it once.
    public static func record(_ events: [Self], in transaction: any StoreTransaction) {
        guard !events.isEmpty else { return }
        transaction.record(RecordCodec.encode(events).span)
    }

    /// The position of the last of some events in the commit of a transaction; nil when there are none.
    public static func position(ofLast events: [Self], in transaction: any StoreTransaction) -> Int? {
        events.isEmpty ? nil : EventPosition(version: transaction.nextVersion, index: events.count - 1).number
    }

    /// The events of a commit; none when its record cannot be read: it stops no follower.
    public static func events(of commit: Commit) -> [Self] {
        guard !commit.record.isEmpty else { return [] }
        return (try? RecordCodec.decode([Self].self, commit.record, of: "event", unknown: .ignored)) ?? []
    }

    /// The members of its notification besides the subscription.
    func members(at position: EventPosition, epoch: String) -> EncodedJSON {
        EncodedJSON { writer in
            writer.member("position")
            writer.write(position.number)
            writer.member("epoch")
            writer.write(epoch)
            writeMembers(into: &writer)
        }
    }
}
