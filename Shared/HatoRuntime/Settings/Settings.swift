/// The effective settings of one start: each declared setting with its value and its source.
public struct Settings: Sendable {
    /// The source of a value.
    public enum Source: Sendable, Hashable, CustomStringConvertible {
        case flag
        case environment(variable: String)
        case file(path: String, key: String)
        /// Derived from `memory-bytes`.
        case memoryBytes
        case defaultValue

        public var description: String {
            switch self {
            case .flag: "flag"
            case .environment(let variable): "environment variable \(variable)"
            case .file(let path, let key): "\(key) in \(path)"
            case .memoryBytes: ServeSettings.memory.name
            case .defaultValue: "default"
            }
        }
    }

    /// A setting with its value.
    public struct Entry: Sendable {
        /// The setting.
        public var setting: Setting
        /// The value as text; nil: none.
        public var value: String?
        /// The source of the value.
        public var source: Source
    }

    /// In the order of declaration.
    public var entries: [Entry]

    init(entries: [Entry]) { self.entries = entries }

    private func entry(_ name: String) -> Entry? { entries.first { $0.setting.name == name } }

    /// The text of a setting; nil when it has neither a value nor a default.
    public func text(_ name: String) -> String? { entry(name)?.value }

    /// The text of a setting that declares a default or is required. Resolving has verified that it exists.
    public subscript(name: String) -> String { entry(name)?.value ?? "" }

    /// The number of an integer setting that declares a default. Resolving has checked it.
    public func integer(_ name: String) -> Int { entry(name)?.value.flatMap { Int($0) } ?? 0 }

    /// Whether a flag is set.
    public func flag(_ name: String) -> Bool { entry(name)?.value == "true" }

    /// The value as host and port; nil when there is none.
    public func address(_ name: String) -> ServiceAddress? { entry(name)?.value.flatMap { ServiceAddress($0) } }

    /// The source of the setting's value; nil when no value was given, so that its default or the value derived from
    /// `memory-bytes` applies, or it has none.
    public func source(of name: String) -> Source? {
        guard let entry = entry(name), entry.value != nil else { return nil }
        return entry.source == .defaultValue || entry.source == .memoryBytes ? nil : entry.source
    }

    /// Whether the value is derived from `memory-bytes`.
    public func followsFromMemory(_ name: String) -> Bool { entry(name)?.source == .memoryBytes }

    /// Name, value and source of every setting, secrets hidden: what `config` and `service.config` show.
    public var shown: [(name: String, value: String?, source: String)] {
        entries.map { entry in
            (entry.setting.name, entry.setting.isSecret && entry.value != nil ? "***" : entry.value, "\(entry.source)")
        }
    }
}

/// A wrong or unknown setting; stops the start with exit code 78.
public struct SettingsError: Error, Sendable, Hashable, CustomStringConvertible {
    public var description: String
    public init(_ description: String) { self.description = description }
}
