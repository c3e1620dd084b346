import HatoFirebase
import HatoModel

/// Makes the databases of unknown namespaces, with rules that allow everything, as emulators do: on one event loop.
final class EmulatorNamespaces {
    private static let rules = #"{"rules": {".read": true, ".write": true}}"#

    private let administratorKey: String
    private let wires: SharedWires
    /// Those that exist: as many as the service has.
    private var known: Set<DatabaseName> = [.default]
    private var waiting: [DatabaseName: [() -> Void]] = [:]

    init(_ administratorKey: String, _ wires: SharedWires) {
        (self.administratorKey, self.wires) = (administratorKey, wires)
    }

    /// Calls `then` when the database exists, or cannot be made: what needs it gets the error.
    func prepare(_ database: DatabaseName, then: @escaping () -> Void) {
        guard !known.contains(database) else { return then() }
        waiting[database, default: []].append(then)
        guard waiting[database]?.count == 1 else { return }
        var params = Messages.Databases.Create(database: database, rules: Self.rules).members
        params["auth"] = .string(administratorKey)
        wires.call(Messages.Databases.Create.method, JSONValue.object(params).encoded) { [self] outcome in
            if Self.exists(outcome) { known.insert(database) }
            for then in waiting.removeValue(forKey: database) ?? [] { then() }
        }
    }

    private static func exists(_ outcome: SharedWires.Outcome) -> Bool {
        switch outcome {
        case .success: true
        case .failure(let error): error.code == .alreadyExists
        }
    }
}
