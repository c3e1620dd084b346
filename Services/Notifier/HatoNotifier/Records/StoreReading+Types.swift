import HatoModel
import HatoStorage

extension Notifier.PayloadType {
    static func key(_ type: String) -> RecordKey { RecordKey(.type).with(type) }
}

extension StoreReading {
    /// The types that can be read, in the order of their names.
    func types() throws -> [Notifier.PayloadType] {
        try rows(RecordKey(.type)).compactMap { row in
            try? RecordCodec.decode(Notifier.PayloadType.self, row.value, key: row.key.bytes)
        }
    }

    /// Nil without such a type, or when its row cannot be read.
    func typedContent(_ type: String) throws -> TypedContent? {
        try readable(Notifier.PayloadType.self, Notifier.PayloadType.key(type)).flatMap { try? TypedContent($0) }
    }

    /// Throws the error of `notifier.triggers.set` when the trigger does not fit its type.
    func checkType(of trigger: Notifier.Trigger) throws {
        guard let name = trigger.type else { return }
        guard let typed = try typedContent(name) else { throw PayloadError.unknownType(name) }
        try typed.check(trigger)
    }

    /// The triggers with this type, in the order of ids.
    func triggers(of type: String) throws -> [Notifier.Trigger] {
        try triggers().triggers.map(\.trigger).filter { $0.type == type }
    }
}
