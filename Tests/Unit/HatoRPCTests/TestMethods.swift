import HatoModel
import HatoRPC
import Logging
import Synchronization

/// Methods that let a test see the order in which things happen.
enum Check {
    /// Immediate; answers what it got, at once.
    struct Echo: RPCRequest {
        static let method = "check.echo"
        static let summary = "Answers what it got"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Echo> { .init(Echo(value: "a"), Result(value: "a")) }
        var value: JSONValue?
        struct Result: FieldObject {
            var value: JSONValue?
            static let fields = Fields<Self>(blank: Self(), .optionalJSON("value", \.value))
        }
        static let fields = Fields<Self>(blank: Self(), .optionalJSON("value", \.value))
    }

    /// Immediate, and writes; ends when the test lets it.
    struct Store: RPCRequest {
        static let method = "check.store"
        static let summary = "Answers when the test says so"
        static let access = Access.anyone
        static let effect = Effect.write
        static var example: RPCExample<Store> { .init(Store(value: "a"), Result(value: "a")) }
        var value: JSONValue?
        struct Result: FieldObject {
            var value: JSONValue?
            static let fields = Fields<Self>(blank: Self(), .optionalJSON("value", \.value))
        }
        static let fields = Fields<Self>(blank: Self(), .optionalJSON("value", \.value))
    }

    /// Immediate; ends on another thread, when the test opens its gate.
    struct Later: RPCRequest {
        static let method = "check.later"
        static let summary = "Answers when its gate opens"
        static let access = Access.anyone
        static let effect = Effect.write
        static var example: RPCExample<Later> { .init(Later(gate: "a"), Result(gate: "a")) }
        var gate: String
        struct Result: FieldObject {
            var gate: String
            static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
        }
        static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
    }

    /// Immediate, and reads; ends on another thread, when the test opens its gate.
    struct Read: RPCRequest {
        static let method = "check.read"
        static let summary = "Answers when its gate opens"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Read> { .init(Read(gate: "a"), Result(gate: "a")) }
        var gate: String
        struct Result: FieldObject {
            var gate: String
            static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
        }
        static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
    }

    /// Immediate, and reads; answers at once with a result of which many make a large response.
    struct Small: RPCRequest {
        static let method = "check.small"
        static let summary = "Answers at once"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Small> { .init(Small(gate: "a"), Result(gate: "a")) }
        var gate: String
        struct Result: FieldObject {
            var gate: String
            static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
        }
        static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
    }

    /// Ordered; ends when the test opens its gate.
    struct Ordered: RPCRequest {
        static let method = "check.afterEarlier"
        static let summary = "Answers when its gate opens"
        static let access = Access.anyone
        static let effect = Effect.write
        static var example: RPCExample<Ordered> { .init(Ordered(gate: "a"), Result(gate: "a")) }
        var gate: String
        struct Result: FieldObject {
            var gate: String
            static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
        }
        static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
    }

    /// Slow and ordered; ends when the test opens its gate.
    struct Slow: RPCRequest {
        static let method = "check.slow"
        static let summary = "Answers when its gate opens, perhaps after its neighbours"
        static let access = Access.anyone
        static let effect = Effect.read
        static let isSlow = true
        static var example: RPCExample<Slow> { .init(Slow(gate: "a"), Result(gate: "a")) }
        var gate: String
        struct Result: FieldObject {
            var gate: String
            static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
        }
        static let fields = Fields<Self>(blank: Self(gate: ""), .required("gate", \.gate))
    }

    /// Fails with an error the wire does not know.
    struct Fail: RPCRequest {
        static let method = "check.fail"
        static let summary = "Fails"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Fail> { .init(Fail(), Empty()) }
        typealias Result = Empty
        static let fields = Fields<Self>(blank: Self())
    }

    /// Fails with an error that carries what it was given.
    struct Refuse: RPCRequest {
        static let method = "check.refuse"
        static let summary = "Fails with a value"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Refuse> { .init(Refuse(value: "a"), Empty()) }
        typealias Result = Empty
        var value: JSONValue
        static let fields = Fields<Self>(blank: Self(value: .null), .required("value", \.value))
    }

    /// Is let go without a response.
    struct Forget: RPCRequest {
        static let method = "check.forget"
        static let summary = "Never answers"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Forget> { .init(Forget(), Empty()) }
        typealias Result = Empty
        static let fields = Fields<Self>(blank: Self())
    }

    struct Who: RPCRequest {
        static let method = "check.who"
        static let summary = "Tells who asks"
        static let access = Access.rules
        static let effect = Effect.read
        static var example: RPCExample<Who> { .init(Who(), Result(uid: nil, admin: false, room: nil)) }
        struct Result: FieldObject {
            var uid: String?
            var admin: Bool
            var room: String?
            static let fields = Fields<Self>(
                blank: Self(admin: false),
                .optional("uid", \.uid),
                .required("admin", \.admin),
                .optional("room", \.room))
        }
        static let fields = Fields<Self>(blank: Self())
    }

    /// Returns the client that limits count a call for.
    struct Client: RPCRequest {
        static let method = "check.client"
        static let summary = "Returns the client it is counted for"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Client> { .init(Client(), Result(client: "", network: "", connection: "")) }
        struct Result: FieldObject {
            var client: String
            var network: String
            /// Of calls without a user that name no address.
            var connection: String
            static let fields = Fields<Self>(
                blank: Self(client: "", network: "", connection: ""),
                .required("client", \.client),
                .required("network", \.network),
                .required("connection", \.connection))
        }
        static let fields = Fields<Self>(blank: Self())
    }

    struct SignedIn: RPCRequest {
        static let method = "check.signedIn"
        static let summary = "For users; its parameter is decoded after the access check"
        static let access = Access.signedIn
        static let effect = Effect.read
        static var example: RPCExample<SignedIn> { .init(SignedIn(count: 1), Empty()) }
        typealias Result = Empty
        var count: Int
        static let fields = Fields<Self>(blank: Self(count: 0), .required("count", \.count))
    }

    struct Administration: RPCRequest {
        static let method = "check.administration"
        static let summary = "For administrators; has a parameter named as of its own"
        static let access = Access.administrator
        static let effect = Effect.read
        static var example: RPCExample<Administration> { .init(Administration(as: "x"), Result(as: "x")) }
        var `as`: String
        struct Result: FieldObject {
            var `as`: String
            static let fields = Fields<Self>(blank: Self(as: ""), .required("as", \.`as`))
        }
        static let fields = Fields<Self>(blank: Self(as: ""), .required("as", \.`as`))
    }

    /// Opens a listener; the test notifies through `TestService.listeners`.
    struct Listen: RPCRequest {
        static let method = "check.listen"
        static let summary = "Opens a listener"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Listen> { .init(Listen(gate: nil), Result(subscription: "1")) }
        /// When given, a first event is sent before the response, which waits for the gate.
        var gate: String?
        struct Result: FieldObject {
            var subscription: String
            static let fields = Fields<Self>(blank: Self(subscription: ""), .required("subscription", \.subscription))
        }
        static let fields = Fields<Self>(blank: Self(), .optional("gate", \.gate))
    }

    struct Unlisten: RPCRequest {
        typealias Result = Empty
        static let method = "check.unlisten"
        static let summary = "Ends a listener"
        static let access = Access.anyone
        static let effect = Effect.read
        static var example: RPCExample<Unlisten> { .init(Unlisten(subscription: "1"), Empty()) }
        var subscription: String
        static let fields = Fields<Self>(blank: Self(subscription: ""), .required("subscription", \.subscription))
    }

    static let methods: [any RPCRequest.Type] = [
        Echo.self, Later.self, Read.self, Ordered.self, Slow.self, Fail.self, Refuse.self, Forget.self, Who.self,
        Client.self, SignedIn.self, Administration.self, Listen.self, Unlisten.self,
    ]
}

/// Gates that a test opens and methods wait at; also a record of who came.
final class Gates: Sendable {
    private struct State {
        var open: Set<String> = []
        var arrived: [String] = []
        var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]
        var callbacks: [String: [@Sendable () -> Void]] = [:]
        var observers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var arrived: [String] { state.withLock { $0.arrived } }

    private func record(_ name: String, _ state: inout State) -> [CheckedContinuation<Void, Never>] {
        state.arrived.append(name)
        let ready = state.observers.filter { $0.count <= state.arrived.count }.map(\.continuation)
        state.observers.removeAll { $0.count <= state.arrived.count }
        return ready
    }

    func pass(_ name: String) async {
        await withCheckedContinuation { continuation in
            let (mayPass, ready) = state.withLock { state in
                let ready = record(name, &state)
                if state.open.contains(name) { return (true, ready) }
                state.waiting[name, default: []].append(continuation)
                return (false, ready)
            }
            ready.forEach { $0.resume() }
            if mayPass { continuation.resume() }
        }
    }

    func whenOpen(_ name: String, _ body: @escaping @Sendable () -> Void) {
        let (mayPass, ready) = state.withLock { state in
            let ready = record(name, &state)
            if state.open.contains(name) { return (true, ready) }
            state.callbacks[name, default: []].append(body)
            return (false, ready)
        }
        ready.forEach { $0.resume() }
        if mayPass { body() }
    }

    func open(_ name: String) {
        let (waiting, callbacks) = state.withLock { state in
            state.open.insert(name)
            return (
                state.waiting.removeValue(forKey: name) ?? [], state.callbacks.removeValue(forKey: name) ?? []
            )
        }
        waiting.forEach { $0.resume() }
        callbacks.forEach { $0() }
    }

    func close(_ name: String) { state.withLock { _ = $0.open.remove(name) } }

    /// Waits until so many have come to any gate.
    func arrivals(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.arrived.count >= count { return true }
                state.observers.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}

/// Knows "admin", "user-<uid>" at once; "late-<uid>" after a gate; everything else is wrong.
final class TestAuthenticator: Authenticator {
    let gates: Gates
    /// When tokens of "short-<uid>" end.
    let shortTokenEnd = Mutex<Int64?>(nil)
    private let ended = Mutex((uids: Set<String>(), watches: [@Sendable () -> Void]()))
    private let endingsCount = Atomic(0)

    /// Service keys and their methods.
    static let services: [String: Set<String>] = [
        "service": ["check.administration", "check.listen"],
        "gateway": [],
        "service-of-sessions": ["check.administration", "session.authenticate", "session.end"],
    ]

    init(gates: Gates) { self.gates = gates }

    func remembered(_ credential: String) -> Caller? {
        if credential == "admin" { return .administrator }
        if let methods = Self.services[credential] {
            return .service(
                Caller.Service(name: credential, methods: methods, mayForward: credential == "gateway"))
        }
        if credential.hasPrefix("user-") {
            return .user(Caller.User(uid: String(credential.dropFirst(5)), expiresAt: Int64.max / 2))
        }
        if credential.hasPrefix("short-") {
            return .user(Caller.User(uid: String(credential.dropFirst(6)), expiresAt: shortTokenEnd.withLock { $0 }))
        }
        return nil
    }

    func authenticate(_ credential: String) async throws -> Caller {
        guard credential.hasPrefix("late-") else {
            throw RPCError.unauthenticated(reason: "INVALID_ID_TOKEN", "The token is wrong")
        }
        await gates.pass(credential)
        return .user(Caller.User(uid: String(credential.dropFirst(5))))
    }

    var endings: Int { endingsCount.load(ordering: .acquiring) }

    func hasEnded(_ user: Caller.User) -> Bool { ended.withLock { $0.uids.contains(user.uid) } }

    func onEndings(_ body: @escaping @Sendable () -> Void) { ended.withLock { $0.watches.append(body) } }

    /// Ends the identities of a user.
    func end(_ uid: String) {
        let watches = ended.withLock { ended in
            ended.uids.insert(uid)
            return ended.watches
        }
        endingsCount.wrappingAdd(1, ordering: .acquiringAndReleasing)
        for watch in watches { watch() }
    }
}
