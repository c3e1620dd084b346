public import HatoModel

/// Which database a namespace names (spec realtime-database §7).
///
/// The project's own namespaces, and none, are the database `default`; configured names are the databases they are
/// configured for; every other namespace is the database of that name.
public struct NamespaceTable: Sendable, Hashable {
    /// The project, e.g. `hato`.
    public var project: String
    /// Databases by namespace, in lower case.
    public var databases: [String: DatabaseName]
    /// The domain below which the first label of a host is a namespace, e.g. `db.example.com`; nil: of no host.
    public var domain: String?

    public init(project: String = "hato", databases: [String: DatabaseName] = [:], domain: String? = nil) {
        self.project = project
        self.databases = databases
        self.domain = domain
    }

    /// The database of a request; nil when no database can have that name.
    ///
    /// - Parameters:
    ///   - namespace: the parameter `ns`; nil and empty: the host decides.
    ///   - host: the header `Host`.
    public func database(namespace: String?, host: String?) -> DatabaseName? {
        let given = namespace.flatMap { $0.isEmpty ? nil : $0.lowercasedASCII }
        guard let name = given ?? host.flatMap(label) else { return .default }
        if let database = databases[name] { return database }
        let project = project.lowercasedASCII
        if name == project || name == "\(project)-default-rtdb" { return .default }
        return DatabaseName(rawValue: name)
    }

    /// The database that a target with a query names, e.g. `/.ws?v=5&ns=hato`; nil when no database can have that name.
    ///
    /// - Parameters:
    ///   - target: of the request; of several parameters `ns` the first one counts.
    ///   - host: the header `Host`.
    public func database(target: String, host: String?) -> DatabaseName? {
        let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        let query = mark.map { target.utf8[target.utf8.index(after: $0)...] } ?? target.utf8[target.endIndex...]
        let name = "ns="
        let pair = query.split(separator: UInt8(ascii: "&")).first { $0.starts(with: name.utf8) }
        let encoded = pair.map { Substring($0.dropFirst(name.utf8.count)) }
        guard let encoded else { return database(namespace: nil, host: host) }
        return PercentDecoding.decode(encoded, isForm: true).flatMap { database(namespace: $0, host: host) }
    }

    /// The first label of a host directly below the domain.
    private func label(of host: String) -> String? {
        guard let domain, !domain.isEmpty else { return nil }
        let name = host.prefix { $0 != ":" }.lowercasedASCII
        let suffix = ".\(domain.lowercasedASCII)"
        guard name.utf8.count > suffix.utf8.count, name.hasSuffix(suffix) else { return nil }
        let label = name.dropLast(suffix.count)
        return label.contains(".") ? nil : String(label)
    }
}
