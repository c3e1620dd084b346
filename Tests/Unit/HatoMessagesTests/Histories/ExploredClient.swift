import HatoRPC

@testable import HatoMessages

/// What is sent to an explored listener.
enum ExploredEvent {
    case whole(UInt64)
    case places(UInt64, [Int])
    case commits([UInt64])

    init(_ json: EncodedJSON) {
        let parts = json.text.split(separator: " ")
        let numbers = parts.dropFirst().compactMap { UInt64($0) }
        switch parts.first {
        case "whole": self = .whole(numbers[0])
        case "places": self = .places(numbers[0], numbers.dropFirst().map { Int($0) })
        default: self = .commits(numbers)
        }
    }

    var json: EncodedJSON {
        switch self {
        case .whole(let version): EncodedJSON("whole \(version)")
        case .places(let version, let children):
            EncodedJSON("places \(version) " + children.map { "\($0)" }.joined(separator: " "))
        case .commits(let versions):
            EncodedJSON("commits " + versions.map { "\($0)" }.joined(separator: " "))
        }
    }

    var version: UInt64 {
        switch self {
        case .whole(let version), .places(let version, _): version
        case .commits(let versions): versions.last ?? 0
        }
    }
}

/// The client of an explored listener: applies what it is sent, and says when that is not what the topic held.
struct ExploredClient: Hashable {
    var children: [UInt64]?
    /// Up to here it has everything.
    var version: UInt64 = 0
    /// Whether it was sent what was read for it.
    private(set) var wasRead = false
    private var lastEvent: UInt64 = 0

    /// - Parameter opened: the version at which it was first allowed to read.
    mutating func hear(_ json: EncodedJSON, _ states: [ExploredListening.State], from opened: UInt64) throws {
        let event = ExploredEvent(json)
        guard event.version > lastEvent else { throw HistoryFailure("\(json.text) was sent at version \(lastEvent)") }
        // What was read just before it came is shared when nothing of it has changed since.
        guard states[Int(max(event.version, opened))].mayRead else {
            throw HistoryFailure("\(json.text) may not be read")
        }
        switch event {
        case .whole(let version):
            wasRead = true
            children = states[Int(version)].children
        case .places(let version, let places):
            wasRead = true
            for place in places { children?[place] = states[Int(version)].children[place] }
        case .commits(let versions):
            guard let first = versions.first, first > version else { throw HistoryFailure("\(json.text) came twice") }
            for version in versions {
                if let child = states[Int(version)].written { children?[child] = version }
            }
        }
        version = event.version
        lastEvent = event.version
        try check("after \(json.text)", states[Int(version)])
    }

    func check(_ when: String, _ state: ExploredListening.State) throws {
        guard children == state.children else {
            throw HistoryFailure("sees \(children ?? []) instead of \(state.children) \(when)")
        }
    }
}
