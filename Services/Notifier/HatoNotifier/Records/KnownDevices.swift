import HatoStorage
import Synchronization

/// Devices as the transactions before left them, so that one that is sent to often is not read each time.
///
/// It is the derived state of the store: only transactions use it, one after the other, and each that writes a row of a
/// device or of its user forgets what was known of it. Snapshots must not use it: they may be older.
final class KnownDevices: Sendable {
    private struct State {
        var devices: [String: DeviceRecord] = [:]
        /// Of users all of whose devices are known: the names, in the order of their rows.
        var users: [String: [String]] = [:]
        /// About what this takes.
        var bytes = 0

        mutating func remove(_ name: String) -> DeviceRecord? {
            let device = devices.removeValue(forKey: name)
            if let device { bytes -= device.bytesInMemory }
            return device
        }
    }

    /// What is known takes about so much; when it would be more, all is forgotten.
    private static let bytesMax = 16 << 20

    // For the memory only: transactions run one at a time.
    private let state = Mutex(State())

    func device(_ name: String) -> DeviceRecord? { state.withLock { $0.devices[name] } }

    /// All devices of a user; nil: they are not known.
    func devices(of uid: String) -> [DeviceRecord]? {
        state.withLock { state in
            guard let names = state.users[uid] else { return nil }
            let devices = names.compactMap { state.devices[$0] }
            return devices.count == names.count ? devices : nil
        }
    }

    func remember(_ device: DeviceRecord) {
        state.withLock { state in
            _ = state.remove(device.device)
            if state.bytes + device.bytesInMemory > Self.bytesMax { state = State() }
            state.devices[device.device] = device
            state.bytes += device.bytesInMemory
        }
    }

    /// Remembers all devices of a user.
    func remember(_ devices: [DeviceRecord], of uid: String) {
        guard !devices.isEmpty else { return }
        for device in devices { remember(device) }
        state.withLock { $0.users[uid] = devices.map(\.device) }
    }

    /// A row is written or goes.
    func forget(_ key: RecordKey) {
        switch key.bytes.first.flatMap(RecordKey.Table.init(rawValue:)) {
        case .device:
            var reader = RecordKeyReader(key.bytes)
            guard let name = reader.text() else { return }
            state.withLock { state in
                if let device = state.remove(name) { state.users[device.uid] = nil }
            }
        case .deviceOfUser:
            var reader = RecordKeyReader(key.bytes)
            guard let uid = reader.text() else { return }
            state.withLock { $0.users[uid] = nil }
        default: break
        }
    }
}

extension DeviceRecord {
    /// About what it takes here, with its names.
    fileprivate var bytesInMemory: Int {
        let texts = [url, token, fid, email, p256dh, auth, secret, previousSecret, session, locale, timeZone]
        return 1_024 + 3 * (uid.utf8.count + device.utf8.count) + texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    }
}

extension StoreTransaction {
    /// Nil until a transaction has made it.
    var knownDevices: KnownDevices? { derived as? KnownDevices }

    /// Makes `knownDevices` if need be, in a transaction that writes.
    func beginKnownDevices() {
        if derived == nil { setDerived(KnownDevices()) }
    }

    /// A device as the transactions before left it. Throws `UnreadableRecord`.
    func device(_ name: String) throws -> DeviceRecord? {
        if let known = knownDevices?.device(name) { return known }
        let device = try record(DeviceRecord.self, DeviceRecord.key(name))
        if let device { knownDevices?.remember(device) }
        return device
    }

    /// The same; nil also when it cannot be read.
    func readableDevice(_ name: String) throws -> DeviceRecord? {
        do { return try device(name) } catch is UnreadableRecord { return nil }
    }
}
