public import HatoModel

/// One setting of a service, declared once: flag, environment variable, key of the settings file, default and help are
/// all derived from it.
///
/// `port` of the service `messages` is the flag `--port`, the variable `HATO_MESSAGES_PORT` and the key `port` in a
/// file. A setting that is the same for every service of an installation (`isShared`) is also read from variables
/// without the service's name, such as `HATO_PORT`.
public struct Setting: Sendable, Hashable {
    /// The values that a setting accepts.
    public enum Kind: Sendable, Hashable {
        case text
        /// A name that is part of addresses: 1 to 63 of `a-z`, `A-Z`, `0-9`, `-`, `_` and `.`.
        case name
        /// A whole number within the range.
        case integer(ClosedRange<Int>)
        /// `true` or `false`; the bare flag means true.
        case flag
        case choice([String])
        /// A path in the file system; empty text is refused.
        case file
        /// `HOST:PORT`, an IPv6 host in brackets.
        case address
    }

    /// The name of the flag, without the dashes.
    public var name: String
    /// The values that it accepts.
    public var kind: Kind
    /// The value when none is given; nil makes the setting optional, or required when `isRequired`.
    public var defaultValue: String?
    /// Whether the start fails without it.
    public var isRequired: Bool
    /// Whether the value is hidden: `config` and `service.config` show `***`.
    public var isSecret: Bool
    /// Whether one value serves all services of a process.
    public var isShared: Bool
    /// A description of one line.
    public var help: String
    /// How the default is derived from `memory-bytes`; nil: `defaultValue` applies.
    public var memory: MemoryDerivation?
    /// The default in words, for pages and help, if it depends on the machine.
    public var defaultInWords: String?

    public init(
        _ name: String, _ kind: Kind, default defaultValue: String? = nil, required isRequired: Bool = false,
        secret isSecret: Bool = false, shared isShared: Bool = false, help: String
    ) {
        self.name = name
        self.kind = kind
        self.defaultValue = defaultValue
        self.isRequired = isRequired
        self.isSecret = isSecret
        self.isShared = isShared
        self.help = help
    }

    /// The setting of a limit; the default is that of the limits.
    public init<Root: Limits>(_ limit: Limit<Root>) {
        self.init(
            limit.name, .integer(limit.range), default: String(limit.value(in: Root())), help: limit.help)
    }

    /// The same setting with a default derived from `memory-bytes`.
    public func following(_ memory: MemoryDerivation) -> Setting {
        var setting = self
        setting.memory = memory
        return setting
    }

    /// The same setting with a default in words.
    public func describingDefault(_ words: String) -> Setting {
        var setting = self
        setting.defaultInWords = words
        return setting
    }

    /// The default for the help; nil: there is none.
    var defaultText: String? { defaultInWords ?? memory?.summary ?? defaultValue }

    /// The value derived from `memory-bytes`; nil: none is.
    func value(in plan: MemoryPlan) -> Int? {
        guard let memory, case .integer(let range) = kind else { return nil }
        return min(max(memory.value(in: plan), range.lowerBound), range.upperBound)
    }

    /// Describes the problem of `value`; nil when it is valid.
    func problem(with value: String) -> String? {
        switch kind {
        case .text:
            return nil
        case .name:
            return Self.isName(value)
                ? nil : "is no name of 1 to 63 letters a-z, A-Z, digits, -, _ and ., such as my-chat-1"
        case .file:
            return value.isEmpty ? "is empty; give a path" : nil
        case .integer(let range):
            guard let number = Int(value) else {
                return "is no whole number; give one from \(range.lowerBound) to \(range.upperBound)"
            }
            return range.contains(number)
                ? nil : "is out of range; give a number from \(range.lowerBound) to \(range.upperBound)"
        case .flag:
            return value == "true" || value == "false" ? nil : "is neither true nor false"
        case .choice(let choices):
            return choices.contains(value) ? nil : "is none of \(choices.joined(separator: ", "))"
        case .address:
            return ServiceAddress(value) == nil ? "is no HOST:PORT, such as 127.0.0.1:7701 or [::1]:7701" : nil
        }
    }

    private static func isName(_ value: String) -> Bool {
        (1...63).contains(value.utf8.count)
            && value.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }

    /// The placeholder for the value in the help; nil for a flag.
    var placeholder: String? {
        switch kind {
        case .text: "TEXT"
        case .name: "NAME"
        case .integer: "N"
        case .flag: nil
        case .choice(let choices): choices.joined(separator: "|")
        case .file: "PATH"
        case .address: "HOST:PORT"
        }
    }
}

/// A host and a port, written `HOST:PORT`.
public struct ServiceAddress: Sendable, Hashable, CustomStringConvertible {
    /// The host name or address.
    public var host: String
    /// The port.
    public var port: Int

    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Nil when `text` is not `HOST:PORT` with a port from 0 to 65535; an IPv6 host is in brackets.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        guard let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port) else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty else { return nil }
        self.init(host: String(host), port: port)
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
