import HatoModel
import Synchronization

/// A phone that does with pushes what the README of the notifier says, and nothing else: it knows of no chat.
struct DayPhone: Sendable {
    struct Shown: Sendable {
        var thread: String
        var key: String
        var text: String
    }

    /// By the id of the notification: a repetition takes its own place.
    private(set) var shown: [String: Shown] = [:]
    /// The number on the icon.
    private(set) var badge = 0
    private(set) var repetitions = 0
    private(set) var withdrawals = 0

    mutating func show(_ notification: String, _ new: Shown, badge: Int?) {
        if shown.updateValue(new, forKey: notification) != nil { repetitions += 1 }
        self.badge = badge ?? self.badge
    }

    mutating func withdraw(_ hato: JSONValue?) {
        withdrawals += 1
        let ids = hato?["withdraw"]?.array?.compactMap(\.string) ?? []
        for id in ids { shown[id] = nil }
        // A push has not all ids where there are many: then the threads say what goes. Ids grow with time: what was
        // sent after this push stays, though it may have come before.
        if let newest = ids.max() {
            let threads = Set(hato?["threads"]?.array?.compactMap(\.string) ?? [])
            shown = shown.filter { !threads.contains($0.value.thread) || $0.key > newest }
        }
        badge = Self.number(hato?["badge"]) ?? badge
    }

    static func number(_ json: JSONValue?) -> Int? { json?.integer.map { Int($0) } }

    /// The texts of what it shows, by chat and message.
    var list: [String: String] {
        Dictionary(shown.values.map { ("\($0.thread)/\($0.key)", $0.text) }) { first, second in
            // Two notifications of one message.
            "\(first) & \(second)"
        }
    }
}

/// The phones of all users, at a stand-in of Firebase, and receivers of webhooks.
final class DayPhones: Sendable {
    private let phones = Mutex<[String: DayPhone]>([:])
    private let pushes = Mutex(0)

    subscript(_ name: String) -> DayPhone { phones.withLock { $0[name] ?? DayPhone() } }
    var all: [String: DayPhone] { phones.withLock { $0 } }
    /// How many came.
    var count: Int { pushes.withLock { $0 } }

    private func change(_ name: String, _ change: (inout DayPhone) -> Void) {
        pushes.withLock { $0 += 1 }
        phones.withLock { change(&$0[name, default: DayPhone()]) }
    }

    /// A message of FCM HTTP v1 arrives at the phone that its token names.
    func take(message: JSONValue) {
        guard let name = message["token"]?.string else { return }
        let data = message["data"]
        let hato = data?["hato"]?.string.flatMap { try? JSONParser.parse(Array($0.utf8)) }
        if hato?["withdraw"] != nil { return change(name) { $0.withdraw(hato) } }
        let badge = DayPhone.number(message["apns"]?["payload"]?["aps"]?["badge"])
        show(name, hato?["id"]?.string, (data, data), badge: badge)
    }

    /// A webhook arrives.
    func take(_ name: String, webhook: JSONValue) {
        let data = webhook["data"]
        if webhook["type"] == "notification.withdrawn" {
            return change(name) { $0.withdraw(data?["hato"]) }
        }
        show(name, data?["notification"]?.string, (data, data?["data"]), badge: nil)
    }

    private func show(
        _ name: String, _ id: String?, _ push: (texts: JSONValue?, data: JSONValue?), badge: Int?
    ) {
        let shown = DayPhone.Shown(
            thread: push.data?["chat"]?.string ?? "", key: push.data?["message"]?.string ?? "",
            text: DayUnread.text(push.texts?["title"]?.string, push.texts?["body"]?.string))
        change(name) { $0.show(id ?? "", shown, badge: badge) }
    }
}
