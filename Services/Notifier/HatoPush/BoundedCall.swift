import AsyncHTTPClient
import HatoFetch
import NIOCore
import NIOHTTP1
import Synchronization

/// One HTTP `POST` whose response is bounded in time and bytes. Redirects are those of the client's configuration.
struct BoundedCall: Sendable {
    /// From connecting to the status and the headers of the response.
    var timeout: Duration
    /// From there to the end of its body: what has not come until then is not read, and costs the connection.
    var bodyTimeout: Duration
    /// Of the body; a longer one is read up to here and costs its connection.
    var bodyBytesMax: Int

    struct Post: Sendable {
        var url: String
        var headers: HTTPHeaders = [:]
        var body: [UInt8]
    }

    struct Response: Sendable {
        var status: Int
        var headers: HTTPHeaders = [:]
        /// The body, or its beginning: it was too long or too slow, or it broke off.
        var body: [UInt8]

        /// The beginning of the body as one line for people.
        var excerpt: String { Self.excerpt(of: body) }

        static func excerpt(of bytes: some Collection<UInt8>) -> String {
            let text = String(decoding: bytes.prefix(200), as: UTF8.self)
            return String(text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) })
        }
    }

    /// There is no response.
    struct Failure: Error {
        /// Why, for people.
        var reason: String
        /// The time limit passed without a response.
        var isLate: Bool
    }

    /// Throws its failure, also for a URL that is none.
    func response(_ client: HTTPClient, _ post: Post) async throws(Failure) -> Response {
        let collector = ResponseCollector(self)
        do {
            let request = try HTTPClient.Request(
                url: post.url, method: .POST, headers: post.headers, body: .byteBuffer(ByteBuffer(bytes: post.body)))
            let task = client.execute(request: request, delegate: collector, deadline: .now() + .init(timeout))
            return try await withTaskCancellationHandler {
                guard let response = try await task.get() else { throw HTTPClientError.remoteConnectionClosed }
                return response
            } onCancel: {
                task.cancel()
            }
        } catch {
            // The status has decided already: a body that breaks off or never ends changes nothing.
            if let response = collector.response { return response }
            throw Self.failure(error)
        }
    }

    private static func failure(_ error: any Error) -> Failure {
        switch error {
        case let error as HTTPClientError:
            let isLate = [.deadlineExceeded, .readTimeout, .getConnectionFromPoolTimeout].contains(error)
            return Failure(reason: error.shortDescription, isLate: isLate)
        case is CancellationError: return Failure(reason: "the notifier is stopping", isLate: false)
        default: return Failure(reason: String(String(describing: error).prefix(200)), isLate: false)
        }
    }
}

/// Gathers a response on the event loop of its connection: a task for each body, and one for the time that it may take,
/// would cost more than all else of a request.
private final class ResponseCollector: HTTPClientResponseDelegate {
    typealias Call = HTTPClient.Task<BoundedCall.Response?>

    private struct TooLong: Error {}

    private struct State {
        var response: BoundedCall.Response?
        var timer: Scheduled<Void>?
    }

    private let call: BoundedCall
    private let state = Mutex(State())

    init(_ call: BoundedCall) { self.call = call }

    /// What has come of it; nil before its head.
    var response: BoundedCall.Response? { state.withLock { $0.response } }

    func didReceiveHead(task: Call, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        // The deadline of the request would leave the body less time the later the head comes.
        let timer = task.eventLoop.scheduleTask(in: .init(call.bodyTimeout)) { task.cancel() }
        state.withLock { state in
            state.response = BoundedCall.Response(status: Int(head.status.code), headers: head.headers, body: [])
            state.timer = timer
        }
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: Call, _ part: ByteBuffer) -> EventLoopFuture<Void> {
        let isFull = state.withLock { state in
            let left = call.bodyBytesMax - (state.response?.body.count ?? 0)
            state.response?.body.append(contentsOf: part.readableBytesView.prefix(left))
            return part.readableBytes >= left
        }
        return isFull ? task.eventLoop.makeFailedFuture(TooLong()) : task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveError(task: Call, _ error: any Error) { end() }

    func didFinishRequest(task: Call) -> BoundedCall.Response? {
        end()
        return response
    }

    private func end() {
        state.withLock { state in
            state.timer?.cancel()
            state.timer = nil
        }
    }
}

extension PinnedClients {
    /// Makes a call to an address that was checked. Throws its failure, also after `shutdown`.
    func response(
        _ call: BoundedCall, _ post: BoundedCall.Post, to admitted: AddressGuard.Admitted
    ) async throws(BoundedCall.Failure) -> BoundedCall.Response {
        let result = await withClient(
            for: admitted,
            isLate: { (result: Result<BoundedCall.Response, BoundedCall.Failure>) in
                if case .failure(let failure) = result { failure.isLate } else { false }
            }
        ) { client in
            do throws(BoundedCall.Failure) { return .success(try await call.response(client, post)) } catch {
                return .failure(error)
            }
        }
        return try (result ?? .failure(BoundedCall.Failure(reason: "the notifier is stopping", isLate: false))).get()
    }
}
