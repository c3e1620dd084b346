import AsyncHTTPClient
import HatoFetch
import NIOCore
import NIOHTTP1

/// One HTTP `POST` whose response is bounded in time and bytes. Redirects are those of the client's configuration.
struct BoundedCall: Sendable {
    /// From connecting to the status and the headers of the response.
    var timeout: Duration
    /// From there to the end of its body: what has not come until then is not read, and costs the connection.
    var bodies: BodyTimeLimit
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

    func response(_ client: HTTPClient, _ post: Post) async throws(Failure) -> Response {
        var request = HTTPClientRequest(url: post.url)
        request.method = .POST
        request.headers = post.headers
        request.body = .bytes(ByteBuffer(bytes: post.body))
        do {
            let response = try await client.execute(request, timeout: .init(timeout))
            // There is a response, whatever becomes of its body.
            return Response(
                status: Int(response.status.code), headers: response.headers, body: await bytes(of: response.body))
        } catch {
            throw Self.failure(error)
        }
    }

    /// Reads the body up to the limits, so that the connection can be used again.
    private func bytes(of body: HTTPClientResponse.Body) async -> [UInt8] {
        // The deadline of the call does not apply to the body.
        await bodies.bytes { await beginning(of: body) }
    }

    private func beginning(of body: HTTPClientResponse.Body) async -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            for try await part in body {
                bytes.append(contentsOf: part.readableBytesView.prefix(bodyBytesMax - bytes.count))
                if bytes.count >= bodyBytesMax { break }
            }
        } catch {}
        return bytes
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
