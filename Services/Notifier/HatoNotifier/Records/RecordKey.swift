import HatoStorage

/// The key of a row: a table's letter, then its parts, so that rows of one thing lie side by side in the order of the
/// parts.
///
/// Text is written with NUL as `00 FF` and ended by `00 01`: a text sorts before every longer one that begins with it.
/// Numbers are big-endian.
struct RecordKey: Hashable, Sendable {
    private(set) var bytes: [UInt8]

    enum Table: UInt8 {
        /// device → `DeviceRecord`
        case device = 0x64  // d
        /// uid, device → nothing
        case deviceOfUser = 0x75  // u
        /// platform, app, address, uid → the device
        case deviceAtAddress = 0x61  // a
        /// when it was used last, 0 for one that is gone, device → nothing; those of tokens without users
        case tokenDevice = 0x62  // b
        /// id → `TriggerRecord`
        case trigger = 0x74  // t
        /// type → `Notifier.PayloadType`
        case type = 0x68  // h
        /// database → `CursorRecord`
        case cursor = 0x63  // c
        /// database, digest of the writer's uid, sequence, index → `ChangeRecord`; the changes that fire triggers, of
        /// each writer in order
        case change = 0x66  // f
        /// database, device, collapse key → `NewestChangeRecord`
        case newest = 0x6F  // o
        /// notification → `NotificationRecord`
        case notification = 0x6E  // n
        /// notification, index → `DeliveryRecord`
        case delivery = 0x76  // v
        /// device, collapse key, sequence → key of the delivery; the unfinished ones of a lane, in order
        case lane = 0x6C  // l
        /// digest of the uid, sequence → key of the row in `lane`; the unfinished ones of a user, in order
        case waiting = 0x77  // w
        /// time, lane → key of the delivery; one row for each lane, here, in `parked` or in `queued`: when its head is
        /// due, or when the head's lease ends
        case due = 0x71  // q
        /// host, uid, time, lane → key of the delivery; lanes that are due while their user or host has as many
        /// attempts as it may
        case parked = 0x70  // p
        /// provider queue, time, lane → key of the delivery; the lanes of devices of a provider, which stand here in
        /// place of `due`
        case queued = 0x65  // e
        /// provider queue → `StoppedQueueRecord`
        case stopped = 0x67  // g
        /// device, thread → `DigestRecord`; of devices that are mailboxes
        case digest = 0x44  // D
        /// name → what the notifier made for itself once: its key of Web Push, and that of reply tokens
        case own = 0x79  // y
        /// key of the delivery → nothing; those that are being attempted
        case leased = 0x73  // s
        /// time of death, notification, index → key of the delivery
        case dead = 0x6B  // k
        /// scope, key → `IdempotencyRecord`
        case idempotency = 0x69  // i
        /// time, notification → nothing; when to forget it. After it was forgotten early → its idempotency key
        case purge = 0x78  // x
        /// What is kept of auth: `RefusalRows`
        case refusal = 0x72  // r
        /// key of a row that could not be read and was set aside → nothing
        case unreadable = 0x7A  // z
        /// uid → `GoneUserRecord`; users of auth that are gone, and of which rows are left
        case gone = 0x47  // G
        /// digest of the uid → nothing; users of auth that are gone, for whom nothing is counted
        case former = 0x41  // A
        /// nothing → `ReconciliationRecord`, while auth is asked about users
        case reconciliation = 0x4C  // L
        /// uid → `PreferencesRecord`
        case preferences = 0x50  // P
        /// uid, thread → `MuteRecord`
        case mute = 0x4D  // M
        /// device, thread, how it passes quiet windows, sequence → key of the delivery; those of a thread that wait and
        /// were not attempted, in order
        case thread = 0x48  // H
        /// category → `CategoryRecord`
        case category = 0x43  // C
        /// notification, uid → `ResponseRecord`; notification, uid, device → `ReportRecord`
        case response = 0x52  // R
        /// uid, notification → `EffectRecord`; those that are not done yet
        case effect = 0x45  // E
        /// time, uid, notification → nothing; when the next attempt of an effect is due
        case effectDue = 0x4B  // K
        /// uid, 0 → `BadgeRecord`; uid, 1, thread → `ThreadRecord`
        case badge = 0x42  // B
        /// uid, thread, notification → `ShownRecord`
        case shown = 0x57  // W
        /// a notification, or a user and maybe a thread → `WithdrawalRecord`
        case withdrawal = 0x53  // S
        /// digest of trigger and path, or of user and thread → `OriginRecord`
        case origin = 0x4F  // O
        /// 0, topic → `TopicRecord`; 0, topic, uid → nothing: its users; 1, uid, topic → nothing: the topics of a user
        case topic = 0x54  // T
        /// notification → how many deliveries need its texts (`TextUses`)
        case textUses = 0x4A  // J
        /// notification → `FanOutRecord`: deliveries that are to be made
        case fanOut = 0x46  // F
    }

    init(_ table: Table) { bytes = [table.rawValue] }

    init(bytes: [UInt8]) { self.bytes = bytes }

    func with(_ text: String) -> RecordKey {
        var key = self
        key.bytes.reserveCapacity(key.bytes.count + text.utf8.count + 2)
        let start = key.bytes.count
        key.bytes.append(contentsOf: text.utf8)
        if key.bytes[start...].contains(0) {
            key.bytes.removeSubrange(start...)
            for byte in text.utf8 {
                key.bytes.append(byte)
                if byte == 0 { key.bytes.append(0xFF) }
            }
        }
        key.bytes.append(0)
        key.bytes.append(1)
        return key
    }

    /// Absent sorts before every text.
    func with(_ text: String?) -> RecordKey {
        guard let text else { return with(byte: 0) }
        return with(byte: 1).with(text)
    }

    /// Behind every text and its absence.
    func with(_ passing: Pacing.Passing) -> RecordKey {
        switch passing {
        case .silent: with(byte: 2)
        case .timeSensitive: with(byte: 3)
        }
    }

    func with(_ number: UInt64) -> RecordKey {
        var key = self
        withUnsafeBytes(of: number.bigEndian) { key.bytes.append(contentsOf: $0) }
        return key
    }

    func with(_ number: UInt32) -> RecordKey {
        var key = self
        withUnsafeBytes(of: number.bigEndian) { key.bytes.append(contentsOf: $0) }
        return key
    }

    /// Times before 1970 do not occur; a clock that is that wrong counts as 1970.
    func with(time: Int64) -> RecordKey { with(UInt64(max(0, time))) }

    func with(_ tail: ArraySlice<UInt8>) -> RecordKey {
        var key = self
        key.bytes.append(contentsOf: tail)
        return key
    }

    private func with(byte: UInt8) -> RecordKey {
        var key = self
        key.bytes.append(byte)
        return key
    }

    /// The first key behind all that begin with this one.
    var end: [UInt8]? { KeyRange(prefix: bytes).upper }

    /// What stands after the table's letter.
    var tail: ArraySlice<UInt8> { bytes.dropFirst() }
}

extension RecordKey: CustomStringConvertible {
    /// Readable characters as they are, other bytes as `\00`.
    var description: String {
        bytes.map { byte in
            if (0x21...0x7E).contains(byte), byte != UInt8(ascii: "\\") { return String(UnicodeScalar(byte)) }
            return (byte < 16 ? "\\0" : "\\") + String(byte, radix: 16)
        }.joined()
    }
}

/// Reads the parts of a key again.
struct RecordKeyReader {
    private var rest: ArraySlice<UInt8>

    init(_ key: some Sequence<UInt8>) { rest = ArraySlice(Array(key)).dropFirst() }

    mutating func text() -> String? {
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            guard byte == 0 else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case 0xFF: bytes.append(0)
            case 0x01: return String(validating: bytes, as: UTF8.self)
            default: return nil
            }
        }
        return nil
    }

    mutating func number() -> UInt64? { number(of: 8) }

    mutating func shortNumber() -> UInt32? { number(of: 4).map(UInt32.init(truncatingIfNeeded:)) }

    private mutating func number(of bytes: Int) -> UInt64? {
        guard rest.count >= bytes else { return nil }
        let number = rest.prefix(bytes).reduce(0) { $0 << 8 | UInt64($1) }
        rest = rest.dropFirst(bytes)
        return number
    }

    var tail: ArraySlice<UInt8> { rest }
}
