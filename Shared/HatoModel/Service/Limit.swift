/// A limit of a service, declared beside the property that has its default: the setting, `config` and `--help` come
/// from this declaration.
public struct Limit<Root: Sendable>: Sendable {
    /// The name of the setting: that of the property, such as `lines-per-page-max` for `linesPerPageMax`.
    public let name: String
    /// What it may be set to.
    public let range: ClosedRange<Int>
    /// What it bounds, with the unit, in a line of `--help`.
    public let help: String
    private let get: @Sendable (Root) -> Int
    private let change: @Sendable (inout Root, Int) -> Void

    /// - Parameters:
    ///   - name: of the setting.
    ///   - path: the property; a value beyond its type is clamped.
    ///   - range: what it may be set to.
    ///   - help: what it bounds, with the unit.
    public init<Value: FixedWidthInteger & Sendable>(
        _ name: String, _ path: any WritableKeyPath<Root, Value> & Sendable, _ range: ClosedRange<Int>, _ help: String
    ) {
        self.name = name
        self.range = range
        self.help = help
        get = { Int(clamping: $0[keyPath: path]) }
        change = { $0[keyPath: path] = Value(clamping: $1) }
    }

    /// The value in `limits`.
    public func value(in limits: Root) -> Int { get(limits) }

    /// Sets the value in `limits`.
    public func set(_ value: Int, in limits: inout Root) { change(&limits, value) }
}

/// The limits of a service: properties with defaults, and a declaration of each.
public protocol Limits: Sendable {
    /// The defaults.
    init()
    /// All of them, in the order of `--help`.
    static var all: [Limit<Self>] { get }
}
