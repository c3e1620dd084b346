import Foundation
public import HatoModel
public import HatoRPC

/// One `hato-dev --ephemeral` of its own, on free ports, in a temporary folder that is deleted when it stops.
///
/// The stack also ends when the process that started it ends, even by a crash, because that process holds the other end
/// of its standard input. Any number of stacks may run at once, in one process or several.
public final class TestStack: Sendable {
    /// The services of the stack.
    public enum Service: String, Sendable, CaseIterable {
        case auth, messages, notifier
    }

    /// The identity of a client.
    public enum Identity: Sendable {
        case nobody
        case administrator
        case user(idToken: String)
    }

    /// The key that makes a caller an administrator.
    public let administratorKey: String
    /// The URL of the gateway for clients of Firebase, such as `http://127.0.0.1:7700`.
    public let gateway: String
    /// The ready line of the stack.
    public let announcement: JSONObject
    private let addresses: [Service: RPCClientConfiguration]
    private let process: StackProcess

    // MARK: Life

    /// Starts `hato-dev`, found by the environment's `HATO_DEV`, then `PATH`, then beside the running test's own
    /// products. `arguments` are further settings (`["--rules", file]`); with `--data` among them, the data is kept.
    /// Throws `TestStackError`, with the stack's output on stderr.
    public static func start(
        _ arguments: [String] = [], executable: String? = nil, within limit: Duration = .seconds(60)
    ) async throws -> TestStack {
        guard let path = executable ?? StackExecutable.path else { throw TestStackError.notFound }
        let ports = (Service.allCases.map(\.rawValue) + ["gateway"]).flatMap { ["--\($0)-port", "0"] }
        let life = arguments.contains("--data") ? [] : ["--ephemeral"]
        let process = try StackProcess(path, life + ["--exit-with-stdin"] + ports + arguments)
        do {
            return try TestStack(process, try await process.readyLine(within: limit))
        } catch {
            await process.stop(within: .seconds(1))
            throw error
        }
    }

    /// Runs `body` with a stack that is stopped afterwards, also when it throws.
    ///
    /// - Throws: `TestStackError` when the stack cannot be started, and the errors of `body`.
    public static func run<Value: Sendable>(
        _ arguments: [String] = [], _ body: (TestStack) async throws -> Value
    ) async throws -> Value {
        let stack = try await start(arguments)
        do {
            let value = try await body(stack)
            await stack.stop()
            return value
        } catch {
            await stack.stop()
            throw error
        }
    }

    private init(_ process: StackProcess, _ ready: JSONObject) throws {
        self.process = process
        announcement = ready
        var addresses: [Service: RPCClientConfiguration] = [:]
        for service in Service.allCases {
            guard let text = ready[service.rawValue]?.string else { continue }
            addresses[service] = RPCClientConfiguration(address: text)
        }
        self.addresses = addresses
        gateway = ready["gateway"]?.string ?? ""
        guard let file = ready["adminKeyFile"]?.string, let text = try? String(contentsOfFile: file, encoding: .utf8),
            let key = text.split(separator: "\n").first
        else { throw TestStackError.badReadyLine(EncodedJSON(.object(ready)).text) }
        administratorKey = String(key)
    }

    /// A stack without references ends too, only later.
    deinit { process.closeInput() }

    /// Asks the stack to end, waits for it, and kills it after `limit`.
    public func stop(within limit: Duration = .seconds(15)) async { await process.stop(within: limit) }

    /// Kills the stack at once, like a power failure.
    public func kill() async { await process.kill() }

    /// The process id of the stack.
    public var processIdentifier: Int32 { process.identifier }

    /// The end of the stack's output on stderr.
    public var log: String { process.log }

    // MARK: Clients

    /// The address of a service, without a credential.
    public func configuration(_ service: Service) -> RPCClientConfiguration {
        guard let configuration = addresses[service] else {
            preconditionFailure("this hato-dev serves no \(service.rawValue)")
        }
        return configuration
    }

    /// A client with a connection of its own.
    public func client(_ service: Service, as identity: Identity = .nobody) -> RPCClient {
        let configuration = configuration(service)
        switch identity {
        case .nobody: return RPCClient(configuration)
        case .administrator: return RPCClient(configuration.with(credential: administratorKey))
        case .user(let idToken): return RPCClient(configuration.with(credential: idToken))
        }
    }

    /// The mails to an address, the oldest first; waits until there are `count` of them.
    ///
    /// The stack writes its mails into a folder. A test reads a code from its `digits`, `code` or `link`.
    ///
    /// - Throws: an error when there are fewer after `limit`; the `RPCError` of the call.
    public func mails(
        to address: String, count: Int = 1, within limit: Duration = .seconds(60)
    ) async throws -> [Auth.Mailbox.Mail] {
        let client = client(.auth, as: .administrator)
        var mails: [Auth.Mailbox.Mail] = []
        var request = Auth.Mailbox.List(to: address)
        try await eventually("\(count) mails to \(address)", within: limit) {
            mails = []
            request.after = nil
            repeat {
                let page = try await client.call(request)
                mails += page.mails
                request.after = page.after
            } while request.after != nil
            return mails.count >= count
        }
        await client.close()
        return mails
    }

    /// Creates an account: with an e-mail address, or anonymous.
    ///
    /// - Throws: the `RPCError` of the call.
    public func newUser(email: String? = nil, password: String = "correct horse battery") async throws -> Auth.Session {
        let client = client(.auth)
        let result = try await client.call(Auth.SignUp(email: email, password: email == nil ? nil : password))
        await client.close()
        guard let session = result.session else { throw TestStackError.noSession }
        return session
    }
}

/// Why the stack could not be started.
public enum TestStackError: Error, Sendable, CustomStringConvertible {
    case notFound
    case cannotStart(path: String, reason: String)
    case endedEarly(status: Int32, log: String)
    case neverReady(log: String)
    case badReadyLine(String)
    /// A sign-up without a session as its result.
    case noSession

    public var description: String {
        switch self {
        case .notFound:
            "hato-dev was not found: build it (swift build --product hato-dev) and name it in HATO_DEV, or put it into PATH"
        case .cannotStart(let path, let reason): "\(path) did not start: \(reason)"
        case .endedEarly(let status, let log): "hato-dev ended with status \(status) before it was ready:\n\(log)"
        case .neverReady(let log): "hato-dev was not ready in time:\n\(log)"
        case .noSession: "auth.signUp returned no session"
        case .badReadyLine(let line): "this library does not understand the ready line of hato-dev: \(line)"
        }
    }
}
