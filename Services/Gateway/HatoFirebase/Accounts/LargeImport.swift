import HatoModel

/// `batchCreate` with a body that only administrators may send: the service accepts the key first, and only then the
/// body is read into values.
struct LargeImport: AccountWork, SecretHolder {
    private let wire: AccountWire
    private let key: String
    /// Nil until the key is accepted.
    private var work: (any AccountWork)?

    init(_ wire: AccountWire, key: String) {
        self.wire = wire
        self.key = key
    }

    var description: String { "LargeImport" }

    /// A service reads the params of a method only for callers that may call it.
    mutating func begin() throws(AuthFault) -> AccountExchange.Step {
        .call(NativeCall(withoutParams: Auth.Users.Import.self, .credential(key)))
    }

    mutating func received(_ result: JSONValue) throws(AuthFault) -> AccountExchange.Step {
        guard let step = try work?.received(result) else { throw .outage() }
        return step
    }

    mutating func failed(_ error: RPCError) throws(AuthFault) -> AccountExchange.Step? {
        if work != nil { return try work?.failed(error) }
        guard error.code == .invalidParams else { return nil }
        var work: any AccountWork = try wire.importOfUsers()
        let step = try work.begin()
        self.work = work
        return step
    }
}
