/// Resolves the effective settings from flags, then environment, then a file, then defaults; pure.
///
/// A setting that is not declared is refused with its name and source: a typo must not be silent.
public struct SettingsResolver: Sendable {
    /// The service's name on the wire, e.g. `messages`: part of its environment variables.
    public var service: String
    /// The settings to resolve.
    public var declared: [Setting]

    public init(service: String, declared: [Setting]) {
        self.service = service
        self.declared = declared
    }

    /// Parses flags as `--name value`, `--name=value`, or `--name` for a flag. Throws `SettingsError`.
    public func flags(of arguments: [String]) throws -> [String: String] {
        var found: [String: String] = [:]
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--"), argument.count > 2 else {
                throw SettingsError("'\(argument)' is no setting; settings are written --name value")
            }
            var name = String(argument.dropFirst(2))
            var value: String?
            if let equals = name.firstIndex(of: "=") {
                value = String(name[name.index(after: equals)...])
                name = String(name[..<equals])
            }
            guard let setting = declared.first(where: { $0.name == name }) else {
                throw SettingsError("unknown flag --\(name)\(suggestion(for: name))")
            }
            if value == nil, setting.kind == .flag {
                if let next = rest.first, !next.hasPrefix("-") {
                    guard next == "true" || next == "false" else {
                        throw SettingsError("setting \(name) (flag): '\(next)' is neither true nor false")
                    }
                    value = rest.popFirst()
                } else {
                    value = "true"
                }
            }
            guard let value = value ?? rest.popFirst() else {
                throw SettingsError("--\(name) needs a value (\(setting.placeholder ?? ""))")
            }
            guard found.updateValue(value, forKey: name) == nil else { throw SettingsError("--\(name) is given twice") }
        }
        return found
    }

    /// `file` holds the keys of the settings file, already chosen for the environment. Throws `SettingsError`.
    public func resolve(
        flags: [String: String], environment: [String: String], file: SettingsFile? = nil
    ) throws -> Settings {
        try refuseUnknown(environment: environment)
        for key in (file?.values.keys.sorted() ?? []) where !declared.contains(where: { $0.name == key }) {
            throw SettingsError("unknown setting '\(key)' in \(file?.path ?? "")\(suggestion(for: key))")
        }
        let entries = try declared.map { try entry(for: $0, flags, environment, file) }
        return Settings(entries: followingMemory(entries))
    }

    /// Derives settings without a given value from `memory-bytes`, where that is declared.
    private func followingMemory(_ entries: [Settings.Entry]) -> [Settings.Entry] {
        let memory = entries.first { $0.setting.name == ServeSettings.memory.name }
        guard let bytes = memory?.value.flatMap({ Int($0) }) else { return entries }
        let plan = MemoryPlan(bytes: bytes)
        return entries.map { entry in
            guard entry.source == .defaultValue, let value = entry.setting.value(in: plan) else { return entry }
            return Settings.Entry(setting: entry.setting, value: String(value), source: .memoryBytes)
        }
    }

    private func entry(
        for setting: Setting, _ flags: [String: String], _ environment: [String: String], _ file: SettingsFile?
    ) throws -> Settings.Entry {
        var entry = Settings.Entry(setting: setting, value: setting.defaultValue, source: .defaultValue)
        if let value = flags[setting.name] {
            entry.value = value
            entry.source = .flag
        } else if let variable = variables(of: setting).first(where: { environment[$0] != nil }) {
            entry.value = environment[variable]
            entry.source = .environment(variable: variable)
        } else if let file, let value = file.values[setting.name] {
            entry.value = value
            entry.source = .file(path: file.path, key: setting.name)
        }
        if let value = entry.value, entry.source != .defaultValue, let problem = setting.problem(with: value) {
            let shown = setting.isSecret ? "the value" : "'\(value)'"
            throw SettingsError("setting \(setting.name) (\(entry.source)): \(shown) \(problem)")
        }
        if entry.value == nil, setting.isRequired {
            throw SettingsError(
                "setting \(setting.name) is missing: give --\(setting.name) or \(variables(of: setting)[0]) (\(setting.help))"
            )
        }
        return entry
    }

    /// The variables that can set it, the most specific first.
    func variables(of setting: Setting) -> [String] {
        let name = setting.name.uppercased().replacing("-", with: "_")
        let own = "HATO_\(service.uppercased())_\(name)"
        return setting.isShared ? [own, "HATO_\(name)"] : [own]
    }

    private func refuseUnknown(environment: [String: String]) throws {
        let prefix = "HATO_\(service.uppercased())_"
        // `HATO_AUTH_SERVER` and these variables for TLS are for the commands that call the service, which may run in
        // the same environment.
        let ofClients = ["SERVER", "TLS", "TLS_CA", "TLS_CERTIFICATE", "TLS_KEY", "TLS_SERVER_NAME"]
        let known = Set(declared.flatMap { variables(of: $0) } + ofClients.map { prefix + $0 })
        for variable in environment.keys.sorted() where variable.hasPrefix(prefix) && !known.contains(variable) {
            let name = variable.dropFirst(prefix.count).lowercased().replacing("_", with: "-")
            let suggested = near(name).map { "; did you mean \(variables(of: $0)[0])?" } ?? ""
            throw SettingsError("unknown environment variable \(variable)\(suggested)")
        }
    }

    /// A suggestion of the declared name closest to a mistyped one, if one is close.
    private func suggestion(for name: String) -> String {
        near(name).map { "; did you mean \($0.name)?" } ?? ""
    }

    /// Names of settings have short units.
    private func near(_ name: String) -> Setting? {
        guard !name.isEmpty else { return nil }
        let name = name.replacing("-milliseconds", with: "-ms")
        return declared.first { $0.name.hasPrefix(name) || name.hasPrefix($0.name) || distance($0.name, name) <= 2 }
    }

    private func distance(_ left: String, _ right: String) -> Int {
        let right = Array(right)
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let substitution = diagonal + (a == b ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(substitution, row[j] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
